package agents

import (
	"encoding/json"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// View compares the Deployment of the backup's name, nil if there is none, with the one that is wanted, nil if the template
// cannot be used. The caller adds Invalid. A Deployment that somebody else controls, or nobody, is never ours.
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

// rolledOut: Kubernetes has seen the present spec, and every pod there is comes from it and is ready.
func rolledOut(deployment *appsv1.Deployment, wanted int32) bool {
	status := deployment.Status
	return deployment.DeletionTimestamp == nil && status.ObservedGeneration >= deployment.Generation &&
		status.UpdatedReplicas == wanted && status.ReadyReplicas == wanted && status.Replicas == wanted
}

// current: it was written for the present spec, and nobody has changed what we set since then.
func current(existing, wanted *appsv1.Deployment) bool {
	hash := fdbv1alpha1.AnnotationAgentsHash
	if existing.Annotations[hash] != wanted.Annotations[hash] || existing.Spec.Paused {
		return false
	}
	return subset(wanted.Labels, existing.Labels) && subset(wanted.Spec, existing.Spec)
}

// subset reports whether everything that wanted sets is the same in existing, where the API server has filled in defaults
// beside it. Written out as JSON, a pointer to 0 or false is set, and what is not set is not there. Lists must be as long as
// wanted: the API server adds nothing to those of a Deployment.
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

// undefaulted are fields of containers, mounts and variables that change what runs, and that the API server leaves out when
// we do: where one of them is, somebody has put it in. More would be a quarrel with admission webhooks, which add to
// Deployments what places their pods.
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
