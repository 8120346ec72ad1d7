package gather

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
)

// JobTemplate returns the template of a drill's Job. An error says, to the tenant, why it cannot be used.
func JobTemplate(job *holdfastv1alpha1.DrillJob) (*corev1.PodTemplateSpec, error) {
	template := &corev1.PodTemplateSpec{}
	decoder := json.NewDecoder(bytes.NewReader(job.Template.Raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(template); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("it is not a Pod template: %w", err)
	}
	if len(template.Spec.Containers) == 0 {
		return nil, errors.New("it has no spec.containers")
	}
	return template, nil
}
