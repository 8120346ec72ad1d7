package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
)

// defaultCount is spec.agentCount's default.
const defaultCount = 3

// The version is part of the images' tags, so only the form of FoundationDB's releases is allowed.
var versionFormat = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[A-Za-z0-9._-]{1,64})?$`)

// Deployment returns the desired Deployment of the agents, for a cluster of this version. A *TemplateError says that the user's
// template cannot be used.
func Deployment(object *fdbv1alpha1.FoundationDBBackup, version string) (*appsv1.Deployment, error) {
	template, err := PodTemplate(object, version, nil)
	if err != nil {
		return nil, err
	}
	deployment := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Name: object.Name, Namespace: object.Namespace, Labels: marked(object),
			OwnerReferences: []metav1.OwnerReference{OwnerReference(object)},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(count(object)),
			Selector: &metav1.LabelSelector{MatchLabels: labels(object)},
			Template: *template,
		},
	}
	hash, err := hashOf(deployment)
	if err != nil {
		return nil, err
	}
	deployment.Annotations = map[string]string{fdbv1alpha1.AnnotationAgentsHash: hash}
	return deployment, nil
}

func count(object *fdbv1alpha1.FoundationDBBackup) int32 {
	if object.Spec.AgentCount == nil {
		return defaultCount
	}
	return *object.Spec.AgentCount
}

func labels(object *fdbv1alpha1.FoundationDBBackup) map[string]string {
	return map[string]string{fdbv1alpha1.LabelBackup: object.Name}
}

// marked are the labels of what no backup of the namespace holds: restored agents would be nobody's, and a restored pod that
// expires or deletes data would do it again.
func marked(object *fdbv1alpha1.FoundationDBBackup) map[string]string {
	return with(labels(object), map[string]string{velerov1.ExcludeFromBackupLabel: "true"})
}

func hashOf(deployment *appsv1.Deployment) (string, error) {
	content, err := json.Marshal(struct {
		Labels map[string]string     `json:"labels"`
		Spec   appsv1.DeploymentSpec `json:"spec"`
	}{deployment.Labels, deployment.Spec})
	if err != nil {
		return "", fmt.Errorf("hash the agents' Deployment: %w", err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// OwnerReference makes the backup the controller of what is made for it. It does not block the deletion of the owner: that
// would need the right to set the owner's finalizers where the API server enforces OwnerReferencesPermissionEnforcement, as
// OpenShift's does.
func OwnerReference(object *fdbv1alpha1.FoundationDBBackup) metav1.OwnerReference {
	reference := *metav1.NewControllerRef(object, fdbv1alpha1.GroupVersion.WithKind(fdbv1alpha1.KindFoundationDBBackup))
	reference.BlockOwnerDeletion = nil
	return reference
}

// annotationRestarted is set by `kubectl rollout restart`. We keep it when we write the template, or the agents would restart.
const annotationRestarted = "kubectl.kubernetes.io/restartedAt"

// Merge returns existing with our fields set as in wanted: a patch from existing to the result corrects them. Labels, annotations
// and fields that others have added stay, except in the pod template, which is replaced as a whole. A selector cannot be changed:
// an error says that the Deployment must be deleted first.
func Merge(existing, wanted *appsv1.Deployment) (*appsv1.Deployment, error) {
	if !subset(wanted.Spec.Selector, existing.Spec.Selector) || !subset(existing.Spec.Selector, wanted.Spec.Selector) {
		return nil, fmt.Errorf("the selector of Deployment %s differs and cannot be changed: delete the Deployment", existing.Name)
	}
	merged := existing.DeepCopy()
	merged.Labels = with(merged.Labels, wanted.Labels)
	merged.Annotations = with(merged.Annotations, wanted.Annotations)
	merged.Spec.Replicas = new(*wanted.Spec.Replicas)
	merged.Spec.Paused = false // a paused Deployment rolls nothing out
	merged.Spec.Template = *keepRestart(existing.Spec.Template, wanted.Spec.Template.DeepCopy())
	return merged, nil
}

func with(base, more map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, base)
	maps.Copy(all, more)
	return all
}

func keepRestart(before corev1.PodTemplateSpec, template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	_, chosen := template.Annotations[annotationRestarted]
	if at, found := before.Annotations[annotationRestarted]; found && !chosen {
		template.Annotations = with(template.Annotations, map[string]string{annotationRestarted: at})
	}
	return template
}
