package agents

import (
	"encoding/json"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// View compares the Deployment of the backup's name, nil if there is none, with the desired one, nil if the template cannot be
// used. The caller sets Invalid. A Deployment that this backup does not control is never ours.
func View(object *fdbv1alpha1.FoundationDBBackup, existing, wanted *appsv1.Deployment) contract.FDBAgentsView {
	view := contract.FDBAgentsView{Wanted: count(object)}
	if existing == nil {
		return view
	}
	view.Exists = true
	view.Ours = metav1.IsControlledBy(existing, object)
	if !view.Ours {
		return view
	}
	view.Ready = existing.Status.ReadyReplicas
	if wanted != nil {
		view.Current = existing.DeletionTimestamp == nil && current(existing, wanted)
	}
	view.RolledOut = rolledOut(existing, view.Wanted)
	return view
}

// rolledOut reports whether Kubernetes has observed the present spec, and every existing pod is made from it and ready.
func rolledOut(deployment *appsv1.Deployment, wanted int32) bool {
	status := deployment.Status
	return deployment.DeletionTimestamp == nil && status.ObservedGeneration >= deployment.Generation &&
		status.UpdatedReplicas == wanted && status.ReadyReplicas == wanted && status.Replicas == wanted
}

// current reports whether the Deployment was written for the present spec, and nobody has changed our fields since then.
func current(existing, wanted *appsv1.Deployment) bool {
	hash := fdbv1alpha1.AnnotationAgentsHash
	if existing.Annotations[hash] != wanted.Annotations[hash] || existing.Spec.Paused {
		return false
	}
	return subset(wanted.Labels, existing.Labels) && subset(wanted.Spec, existing.Spec)
}

// subset reports whether everything that wanted sets has the same value in existing, where the API server has added defaults.
// Both are compared as JSON: a pointer to 0 or false is set, and an unset field is absent. Lists must have the same length: the
// API server adds nothing to those of a Deployment.
func subset(wanted, existing any) bool {
	want, err := plain(wanted)
	if err != nil {
		return false
	}
	got, err := plain(existing)
	return err == nil && contains(want, got)
}

func plain(value any) (any, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var out any
	return out, json.Unmarshal(content, &out)
}

func contains(want, got any) bool {
	switch want := want.(type) {
	case nil:
		return true
	case map[string]any:
		got, isMap := got.(map[string]any)
		return isMap && containsAll(want, got)
	case []any:
		got, isList := got.([]any)
		if !isList || len(got) != len(want) {
			return false
		}
		for i := range want {
			if !contains(want[i], got[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(want, got)
}

// undefaulted are fields of containers, mounts and variables that change what runs, and to which the API server gives no default:
// if one is set that we did not set, somebody has added it. The list is short because admission webhooks may add to Deployments
// what places their pods, and we would undo it again and again.
var undefaulted = []string{
	"command", "args", "env", "envFrom", "value", "volumeMounts", "subPath", "lifecycle",
	"livenessProbe", "startupProbe", "readinessProbe",
}

func containsAll(want, got map[string]any) bool {
	for name, value := range want {
		if !contains(value, got[name]) {
			return false
		}
	}
	for _, name := range undefaulted {
		_, wanted := want[name]
		if _, there := got[name]; there && !wanted {
			return false
		}
	}
	return true
}
