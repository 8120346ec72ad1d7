package namespaces

import (
	"context"
	"fmt"
	"strings"

	"go.temporal.io/sdk/worker"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

// Activities makes and deletes namespaces of drills.
type Activities struct {
	// Client reads from and writes to the API server itself.
	Client    client.Client
	ClusterID string
	// Paused returns an error while another controller serves the tenants' backups; nothing is done then.
	Paused func() error
}

// Register registers the activities with a worker under their wire names.
func (a *Activities) Register(registry worker.ActivityRegistry) {
	activities.RegisterGuarded(registry, a.Paused, contract.PrepareDrillNamespace, a.Prepare)
	activities.RegisterGuarded(registry, a.Paused, contract.StartDrillJob, a.StartJob)
	activities.RegisterGuarded(registry, a.Paused, contract.RemoveDrillNamespace, a.Remove)
}

// Prepare makes the namespace, and then what limits it: so nothing is restored into one without limits. While no place is free it
// makes none. Those that have taken a place at the same time, and find each other before they have limits, give theirs back.
func (a *Activities) Prepare(ctx context.Context, in contract.DrillNamespace) (contract.DrillNamespaceView, error) {
	var view contract.DrillNamespaceView
	if err := a.check(in); err != nil {
		return view, err
	}
	present, err := a.read(ctx, in)
	if err != nil {
		return view, err
	}
	if present != nil && !present.DeletionTimestamp.IsZero() {
		return contract.DrillNamespaceView{Exists: true, Full: true}, nil // it gave its place back
	}
	if present == nil {
		if view.Full, err = a.full(ctx, in); err != nil || view.Full {
			return view, err
		}
		classes, err := a.storageClasses(ctx)
		if err != nil {
			return view, err
		}
		if err := a.create(ctx, a.namespace(in, classes)); err != nil {
			return view, err
		}
	}
	limited, err := a.limited(ctx, in)
	if err != nil {
		return view, err
	}
	if !limited {
		if view.Full, err = a.full(ctx, in); err != nil {
			return view, err
		}
	}
	if view.Full {
		view, err = a.Remove(ctx, in)
		view.Full = true
		return view, err
	}
	return a.limit(ctx, in)
}

// limit makes what limits the namespace, and waits until the quota is in force.
func (a *Activities) limit(ctx context.Context, in contract.DrillNamespace) (view contract.DrillNamespaceView, err error) {
	for _, limit := range limits(in) {
		if err := a.create(ctx, limit); err != nil {
			return view, err
		}
	}
	if in.TenantsMayLook {
		if err := a.bindViewers(ctx, in); err != nil {
			return view, err
		}
	}
	quota := &corev1.ResourceQuota{}
	if err := a.Client.Get(ctx, types.NamespacedName{Namespace: in.Name, Name: limitsName}, quota); err != nil {
		return view, fmt.Errorf("get ResourceQuota %s/%s: %w", in.Name, limitsName, err)
	}
	if len(quota.Status.Hard) < len(quota.Spec.Hard) {
		return view, fmt.Errorf("ResourceQuota %s/%s is not in force yet: the quota controller has not seen it", in.Name, limitsName)
	}
	view.Exists, view.Prepared = true, true
	return view, nil
}

// limited reports whether the namespace has its quota already: it keeps its place then, also if there are too many.
func (a *Activities) limited(ctx context.Context, in contract.DrillNamespace) (bool, error) {
	err := a.Client.Get(ctx, types.NamespacedName{Namespace: in.Name, Name: limitsName}, &corev1.ResourceQuota{})
	if err == nil || apierrors.IsNotFound(err) {
		return err == nil, nil
	}
	return false, fmt.Errorf("get ResourceQuota %s/%s: %w", in.Name, limitsName, err)
}

// Remove deletes the namespace with everything in it. It does not wait until it is gone.
func (a *Activities) Remove(ctx context.Context, in contract.DrillNamespace) (contract.DrillNamespaceView, error) {
	view := contract.DrillNamespaceView{}
	if err := a.check(in); err != nil {
		return view, err
	}
	present, err := a.read(ctx, in)
	if err != nil || present == nil {
		return view, err
	}
	view.Exists = true
	if !present.DeletionTimestamp.IsZero() {
		return view, nil
	}
	uid := present.UID
	if err := client.IgnoreNotFound(a.Client.Delete(ctx, present, client.Preconditions{UID: &uid})); err != nil {
		return view, fmt.Errorf("delete Namespace %s: %w", in.Name, err)
	}
	return view, nil
}

// check refuses a name that was not derived for the drill: the input comes from Temporal.
func (a *Activities) check(in contract.DrillNamespace) error {
	if wanted := owner.DrillName(a.ClusterID, types.UID(in.Ref.UID)); in.Name != wanted || in.Ref.UID == "" {
		return fmt.Errorf("namespace %q is not that of drill %s, which is %q", in.Name, in.Ref, wanted)
	}
	return nil
}

// read returns the drill's namespace; nil if there is none.
func (a *Activities) read(ctx context.Context, in contract.DrillNamespace) (*corev1.Namespace, error) {
	found := &corev1.Namespace{}
	err := a.Client.Get(ctx, types.NamespacedName{Name: in.Name}, found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // not existing is no error
	case err != nil:
		return nil, fmt.Errorf("get Namespace %s: %w", in.Name, err)
	case !owner.ForDrill(a.ClusterID, found, types.UID(in.Ref.UID)):
		return nil, fmt.Errorf("namespace %s exists and was not made for drill %s: it is left alone", in.Name, in.Ref)
	}
	return found, nil
}

// full reports whether other drills have all the places, or another drill of the same tenant has one.
func (a *Activities) full(ctx context.Context, in contract.DrillNamespace) (bool, error) {
	var all corev1.NamespaceList
	if err := a.Client.List(ctx, &all, client.HasLabels{holdfastv1alpha1.LabelDrill}); err != nil {
		return false, fmt.Errorf("list Namespaces of drills: %w", err)
	}
	others := 0
	for i := range all.Items {
		drill, _, ours := owner.DrillOf(a.ClusterID, &all.Items[i])
		if !ours || all.Items[i].Name == in.Name {
			continue
		}
		if others++; drill.Namespace == in.Ref.Namespace {
			return true, nil
		}
	}
	return others >= in.MaxActive, nil
}

// create creates an object that may exist already.
func (a *Activities) create(ctx context.Context, object client.Object) error {
	if err := a.Client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

func (a *Activities) namespace(in contract.DrillNamespace, classes []string) *corev1.Namespace {
	drill := &metav1.ObjectMeta{Namespace: in.Ref.Namespace, Name: in.Ref.Name, UID: types.UID(in.Ref.UID)}
	made := &corev1.Namespace{ObjectMeta: owner.DrillMeta(a.ClusterID, drill, "")}
	made.Annotations[storageClassesAnnotation] = strings.Join(classes, ",")
	for key, value := range in.Labels {
		if _, ours := made.Labels[key]; !ours {
			made.Labels[key] = value
		}
	}
	for key, value := range in.Annotations {
		if _, ours := made.Annotations[key]; !ours {
			made.Annotations[key] = value
		}
	}
	return made
}
