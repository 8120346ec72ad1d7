package tenant

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"holdfast.dev/holdfast/k8s"
)

// lean is the object as a person would write it: Velero's types would spell out zeros, which would count as values before the
// administrator's defaults and rules.
func lean(object client.Object) (*unstructured.Unstructured, error) {
	kind, err := apiutil.GVKForObject(object, k8s.Scheme())
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encode the %s: %w", kind.Kind, err)
	}
	delete(content, "status")
	withoutZeros(content)
	prune(content)
	made := &unstructured.Unstructured{Object: content}
	made.SetGroupVersionKind(kind)
	return made, nil
}

// required are the fields that are there also if they are empty.
var required = map[string]bool{"spec": true, "backupSpec": true, "restoreSpec": true}

// durations are Velero's fields that are written although they are not set.
var durations = []string{"ttl", "csiSnapshotTimeout", "itemOperationTimeout"}

func withoutZeros(content map[string]any) {
	spec, _ := content["spec"].(map[string]any)
	for _, name := range []string{"backupSpec", "restoreSpec"} {
		ours, _ := spec[name].(map[string]any)
		for _, field := range durations {
			if ours[field] == "0s" {
				delete(ours, field)
			}
		}
	}
}

// prune removes what is empty.
func prune(content map[string]any) {
	for key, value := range content {
		if inner, is := value.(map[string]any); is {
			prune(inner)
			if len(inner) == 0 && !required[key] {
				delete(content, key)
			}
			continue
		}
		if value == nil {
			delete(content, key)
		}
	}
}
