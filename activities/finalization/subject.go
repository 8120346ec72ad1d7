package finalization

import (
	"context"
	"errors"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/stores"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// Finder reads the objects of a finalization.
type Finder struct {
	// Reader reads from the API server itself.
	Reader        client.Reader
	ClusterID     string
	OADPNamespace string
	// Stores read through Reader.
	Stores *stores.Stores
}

// Subject is a tenant's object with the Velero Restore that was made for it.
type Subject struct {
	// NAR is nil if no object of that UID exists.
	NAR *oadpv1alpha1.NonAdminRestore
	// Restore is nil if it does not exist, or belongs to another object.
	Restore *velerov1.Restore
}

// Stays reports whether the tenant's object exists and is not being deleted.
func (s *Subject) Stays() bool { return s.NAR != nil && s.NAR.DeletionTimestamp.IsZero() }

// Due reports whether Velero has restored what it could, so that the finalization may start. Until then Velero writes the
// results.
func (s *Subject) Due() bool {
	return s.Stays() && s.Restore != nil && velero.Usable(s.Restore.Status.Phase)
}

// Find reads the tenant's object and its Velero Restore.
func (f *Finder) Find(ctx context.Context, ref contract.ObjectRef) (*Subject, error) {
	nar := &oadpv1alpha1.NonAdminRestore{}
	err := f.Reader.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, nar)
	if apierrors.IsNotFound(err) || (err == nil && string(nar.UID) != ref.UID) {
		return &Subject{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get NonAdminRestore %s: %w", ref, err)
	}
	finder := velero.Finder{Reader: f.Reader, ClusterID: f.ClusterID, OADPNamespace: f.OADPNamespace}
	found, err := finder.Restore(ctx, nar)
	return &Subject{NAR: nar, Restore: found.Made}, err
}

var errUnknownTask = errors.New("unknown task")

// TaskNamed returns the task of that name.
func TaskNamed(name string) (Task, error) {
	for _, task := range Tasks() {
		if task.Name() == name {
			return task, nil
		}
	}
	return nil, fmt.Errorf("%w %q", errUnknownTask, name)
}
