package collection_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/collection"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

func kind(t *testing.T, name string) collection.Kind {
	t.Helper()
	for _, each := range collection.Kinds() {
		if each.Kind == name {
			return each
		}
	}
	t.Fatal(name)
	return collection.Kind{}
}

func copied(t *testing.T, uid string) *corev1.Secret {
	t.Helper()
	name := fake.LocationName("own")
	secret := &corev1.Secret{ObjectMeta: kind(t, "Secret").Origin.Meta(fake.NaBSL("own"), name, fake.OADPNamespace, name)}
	if uid != "" {
		secret.Annotations[oadpv1alpha1.NabslOriginUIDAnnotation] = uid
	}
	return secret
}

func TestWhatIsAnOrphan(t *testing.T) {
	alive := fake.NaBSL("own")
	claiming := fake.NaBSL("own")
	claiming.Status.VeleroBackupStorageLocation = &oadpv1alpha1.VeleroBackupStorageLocation{NACUUID: fake.LocationName("own")}
	changed := func(change func(*corev1.Secret)) *corev1.Secret {
		secret := copied(t, "")
		change(secret)
		return secret
	}
	tests := map[string]struct {
		made   *corev1.Secret
		origin client.Object
		want   bool
	}{
		"its object is gone":                        {copied(t, "uid-own"), nil, true},
		"its object is gone, made by another":       {copied(t, ""), nil, true},
		"its object is there":                       {copied(t, "uid-own"), alive, false},
		"another incarnation is there":              {copied(t, "uid-before"), alive, true},
		"another incarnation that has taken it":     {copied(t, "uid-before"), claiming, false},
		"an object is there, which one is not said": {copied(t, ""), alive, false},
		"not ours":                             {changed(func(s *corev1.Secret) { delete(s.Labels, oadpv1alpha1.ManagedByLabel) }), nil, false},
		"not of OADP":                          {changed(func(s *corev1.Secret) { delete(s.Labels, oadpv1alpha1.OadpLabel) }), nil, false},
		"called otherwise than its label says": {changed(func(s *corev1.Secret) { s.Name = "cloud-credentials" }), nil, false},
		"no origin":                            {changed(func(s *corev1.Secret) { s.Annotations = nil }), nil, false},
		"an origin that cannot be": {
			changed(func(s *corev1.Secret) { s.Annotations[oadpv1alpha1.NabslOriginNameAnnotation] = "A/B" }), nil, false,
		},
		"being deleted": {changed(func(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{Time: time.Now()} }), nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, kind(t, "Secret").Orphan(tt.made, tt.origin))
		})
	}
}

func TestABackupWithDataIsNeverDisposable(t *testing.T) {
	now := metav1.Now()
	for _, phase := range []velerov1.BackupPhase{
		"", "New", "Queued", "ReadyToStart", "FailedValidation", "InProgress", "WaitingForPluginOperations", "Finalizing",
		"Completed", "PartiallyFailed", "Failed", "Deleting", "SomethingNewer",
	} {
		waits := phase == "" || phase == "New" || phase == "Queued" || phase == "FailedValidation"
		for _, status := range []velerov1.BackupStatus{
			{Phase: phase}, {Phase: phase, StartTimestamp: &now}, {Phase: phase, CompletionTimestamp: &now},
		} {
			untouched := status.StartTimestamp == nil && status.CompletionTimestamp == nil
			assert.Equal(t, waits && untouched, kind(t, "Backup").Disposable(&velerov1.Backup{Status: status}), "%+v", status)
		}
	}
	assert.False(t, kind(t, "Backup").Disposable(&metav1.PartialObjectMetadata{}), "its status is not known")
}

func TestARestoreUnderWayIsLeft(t *testing.T) {
	for phase, want := range map[velerov1.RestorePhase]bool{
		"": false, "New": false, "InProgress": false, "Finalizing": false, "Completed": true, "Failed": true, "FailedValidation": true,
	} {
		restore := &velerov1.Restore{Status: velerov1.RestoreStatus{Phase: phase}}
		assert.Equal(t, want, kind(t, "Restore").Disposable(restore), phase)
	}
}

func TestAKindThatIsNotServedIsNoProof(t *testing.T) {
	resource := schema.GroupResource{Group: "oadp.openshift.io", Resource: "nonadminbackups"}
	assert.True(t, collection.Absent(apierrors.NewNotFound(resource, "nightly")))
	assert.False(t, collection.Absent(apierrors.NewGenericServerResponse(404, "get", resource, "nightly", "page not found", 0, true)))
	assert.False(t, collection.Absent(apierrors.NewForbidden(resource, "nightly", nil)))
	assert.False(t, collection.Absent(fake.ErrAway))
	assert.False(t, collection.Absent(nil))
}

func TestYoung(t *testing.T) {
	now := time.Now()
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))}}
	assert.True(t, collection.Young(made, now, 2*time.Minute))
	assert.False(t, collection.Young(made, now, time.Minute))
}
