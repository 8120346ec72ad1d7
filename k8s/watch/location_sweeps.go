package watch

import (
	"context"
	"fmt"
	"reflect"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// sweep judges every location by live lists, while the informers may still be silent after an outage.
func (l *locations) sweep(ctx context.Context) error {
	if err := l.Paused(); err != nil {
		return err
	}
	live := &locationSnapshot{Reader: l.gatherer.Reader, objects: map[string]client.Object{}}
	for _, kind := range []struct {
		list client.ObjectList
		in   string
	}{
		{&oadpv1alpha1.NonAdminBackupStorageLocationList{}, ""},
		{&velerov1.BackupStorageLocationList{}, l.OADPNamespace},
		{&oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestList{}, l.OADPNamespace},
	} {
		if err := l.listLive(ctx, kind.list, live.take, client.InNamespace(kind.in)); err != nil {
			return err
		}
	}
	gatherer := *l.gatherer
	gatherer.Reader = live
	var failed error
	for _, object := range live.locations {
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

// locationSnapshot is a reader over lists made at one time; what it has not listed comes from the cache.
type locationSnapshot struct {
	client.Reader
	locations []*oadpv1alpha1.NonAdminBackupStorageLocation
	objects   map[string]client.Object // by type and key
}

func (s *locationSnapshot) take(list client.ObjectList) {
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		object := item.DeepCopyObject().(client.Object)
		s.objects[snapshotKey(object, client.ObjectKeyFromObject(object))] = object
		if location, ok := object.(*oadpv1alpha1.NonAdminBackupStorageLocation); ok {
			s.locations = append(s.locations, location)
		}
		return nil
	})
}

func snapshotKey(object client.Object, key client.ObjectKey) string {
	return fmt.Sprintf("%T %s", object, key)
}

// Get implements client.Reader.
func (s *locationSnapshot) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	switch into.(type) {
	case *oadpv1alpha1.NonAdminBackupStorageLocation, *velerov1.BackupStorageLocation,
		*oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest:
		found, ok := s.objects[snapshotKey(into, key)]
		if !ok {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		}
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found).Elem())
		return nil
	}
	return s.Reader.Get(ctx, key, into, options...)
}
