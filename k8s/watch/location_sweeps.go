package watch

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// sweep judges every location by live lists, while the informers may still be silent after an outage.
func (l *locations) sweep(ctx context.Context) error {
	if err := l.Paused(); err != nil {
		return err
	}
	live := newLiveLists(l.gatherer.Reader)
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
		live.covers(kind.of)
		if err := l.listLive(ctx, kind.list, live.take, client.InNamespace(kind.in)); err != nil {
			return err
		}
	}
	gatherer := *l.gatherer
	gatherer.Reader = live
	var failed error
	for _, object := range listed[*oadpv1alpha1.NonAdminBackupStorageLocation](live) {
		ref := contract.ObjectRef{Namespace: object.Namespace, Name: object.Name, UID: string(object.UID)}
		o, err := gatherer.Gather(ctx, ref)
		if err == nil {
			err = l.signal(ctx, ref, o, false, func(_ string, err error) error { return err })
		}
		if err != nil {
			failed = err // what keeps one object from being judged must not hide the others
		}
	}
	return failed
}
