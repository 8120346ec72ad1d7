package queue

import (
	"context"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// kind is a kind of objects that need turns, and whose position in Velero's queue is shown.
type kind struct {
	pool   contract.Pool
	origin owner.Origin
	// object is an empty one.
	object client.Object
	status func(client.Object) status
	// line lists Velero's objects.
	line func(ctx context.Context, from client.Reader, namespace string) (line, error)
}

// status is what matters here of an object's status: its phase, the field that shows its position, and the name of the Velero
// object that was made for it.
type status struct {
	phase oadpv1alpha1.NonAdminPhase
	info  **oadpv1alpha1.QueueInfo
	made  string
}

// line is Velero's queue of one kind: its objects by name, and their positions.
type line struct {
	made      map[string]client.Object
	positions map[string]int
}

var kinds = []*kind{
	{
		pool: contract.PoolBackups, origin: owner.Backup, object: &oadpv1alpha1.NonAdminBackup{},
		status: func(object client.Object) status {
			of := &object.(*oadpv1alpha1.NonAdminBackup).Status
			return status{of.Phase, &of.QueueInfo, ptr.Deref(of.VeleroBackup, oadpv1alpha1.VeleroBackup{}).Name}
		},
		line: lineOf(func(all *velerov1.BackupList) []velerov1.Backup { return all.Items }, velero.QueuePositions[velerov1.Backup]),
	},
	{
		pool: contract.PoolRestores, origin: owner.Restore, object: &oadpv1alpha1.NonAdminRestore{},
		status: func(object client.Object) status {
			of := &object.(*oadpv1alpha1.NonAdminRestore).Status
			return status{of.Phase, &of.QueueInfo, ptr.Deref(of.VeleroRestore, oadpv1alpha1.VeleroRestore{}).Name}
		},
		line: lineOf(func(all *velerov1.RestoreList) []velerov1.Restore { return all.Items }, velero.QueuePositions[velerov1.Restore]),
	},
}

// lineOf makes a function that reads a line from a list of items.
func lineOf[L, T any, List interface {
	*L
	client.ObjectList
}, Object interface {
	*T
	client.Object
}](items func(*L) []T, positions func([]T) map[string]int) func(context.Context, client.Reader, string) (line, error) {
	return func(ctx context.Context, from client.Reader, namespace string) (line, error) {
		list, all := new(L), map[string]client.Object{}
		if err := from.List(ctx, List(list), client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return line{}, fmt.Errorf("list Velero's objects in the cache: %w", err)
		}
		made := items(list)
		for i := range made {
			object := Object(&made[i])
			all[object.GetName()] = object
		}
		return line{made: all, positions: positions(made)}, nil
	}
}
