package watch

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// sweep looks at the locations that the cache does not know yet as they are, see Watcher.sweep.
func (l *locations) sweep(ctx context.Context) error {
	if err := l.Paused(); err != nil {
		return err
	}
	live := newLive(l.gatherer.Reader)
	for _, kind := range []struct {
		of   client.Object
		list client.ObjectList
		in   string
	}{
		{&oadpv1alpha1.NonAdminBackupStorageLocation{}, &oadpv1alpha1.NonAdminBackupStorageLocationList{}, ""},
		{&velerov1.BackupStorageLocation{}, &velerov1.BackupStorageLocationList{}, l.OADPNamespace},
		{
			&oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest{},
			&oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestList{}, l.OADPNamespace,
		},
	} {
		if err := l.compare(ctx, live, kind.of, kind.list, kind.in); err != nil {
			return err
		}
	}
	concerned := concernedBy(live, changed[*oadpv1alpha1.NonAdminBackupStorageLocation](live), k8s.LocationOrigin,
		moved[*velerov1.BackupStorageLocation](live))
	for _, request := range moved[*oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest](live) {
		if key, named := k8s.LocationOrigin.Of(request); named {
			concerned.keys[key] = true
		}
	}
	gatherer := *l.gatherer
	gatherer.Reader = live
	var failed error
	for _, ref := range concerned.refs(ctx, func() client.Object { return &oadpv1alpha1.NonAdminBackupStorageLocation{} }) {
		o, err := gatherer.Gather(ctx, ref)
		if err == nil {
			err = l.signal(ctx, ref, o, incomplete(o), func(_ string, err error) error { return err })
		}
		if err != nil {
			failed = err // what keeps one object from being judged must not hide the others
		}
	}
	return failed
}
