package synchronization_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/synchronization"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/ledger"
)

const nacuuid = "shop-nightly-f47ac10b-58cc-4372-a567-0e02b2c3d479"

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// backup is a Velero Backup that ended at noon and was brought back an hour later.
func backup(changes ...func(*velerov1.Backup)) *velerov1.Backup {
	made := &velerov1.Backup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "openshift-adp", Name: nacuuid, UID: "u1", CreationTimestamp: metav1.NewTime(noon.Add(time.Hour)),
			Labels: map[string]string{
				oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue, oadpv1alpha1.ManagedByLabel: oadpv1alpha1.ManagedByLabelValue,
				oadpv1alpha1.NabOriginNACUUIDLabel: nacuuid,
			},
			Annotations: map[string]string{
				oadpv1alpha1.NabOriginNamespaceAnnotation: "shop", oadpv1alpha1.NabOriginNameAnnotation: "nightly",
			},
		},
		Spec:   velerov1.BackupSpec{StorageLocation: "default", IncludedNamespaces: []string{"shop"}},
		Status: velerov1.BackupStatus{Phase: velerov1.BackupPhaseCompleted, CompletionTimestamp: &metav1.Time{Time: noon}},
	}
	for _, change := range changes {
		change(made)
	}
	return made
}

func annotated(key, value string) func(*velerov1.Backup) {
	return func(made *velerov1.Backup) { made.Annotations[key] = value }
}

func labelled(key, value string) func(*velerov1.Backup) {
	return func(made *velerov1.Backup) { made.Labels[key] = value }
}

func phase(phase velerov1.BackupPhase) func(*velerov1.Backup) {
	return func(made *velerov1.Backup) { made.Status.Phase = phase }
}

func madeHere(made *velerov1.Backup) { made.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour)) }

func TestDecide(t *testing.T) {
	admins := &synchronization.Location{Name: "default"}
	own := &synchronization.Location{Name: "l", Tenants: true, Owner: "shop", NaBSL: "own"}
	others := &synchronization.Location{Name: "l", Tenants: true, Owner: "bank", NaBSL: "own"}
	ownerless := &synchronization.Location{Name: "l", Tenants: true}
	tests := map[string]struct {
		made     *velerov1.Backup
		location *synchronization.Location
		entered  bool
		want     synchronization.Action
	}{
		"brought back from an admin's location":  {backup(), admins, false, synchronization.Make},
		"brought back from its tenant's own":     {backup(), own, false, synchronization.Make},
		"partially failed":                       {backup(phase(velerov1.BackupPhasePartiallyFailed)), admins, false, synchronization.Make},
		"from another tenant's bucket":           {backup(), others, false, synchronization.Distrust},
		"from the bucket of a location gone":     {backup(), ownerless, false, synchronization.Distrust},
		"location unknown":                       {backup(), nil, false, synchronization.Leave},
		"failed":                                 {backup(phase(velerov1.BackupPhaseFailed)), admins, false, synchronization.Leave},
		"being deleted by Velero":                {backup(phase(velerov1.BackupPhaseDeleting)), admins, false, synchronization.Leave},
		"in progress":                            {backup(phase(velerov1.BackupPhaseInProgress)), admins, false, synchronization.Leave},
		"without an end":                         {backup(func(b *velerov1.Backup) { b.Status.CompletionTimestamp = nil }), admins, false, synchronization.Leave},
		"object being deleted":                   {backup(func(b *velerov1.Backup) { b.DeletionTimestamp = &metav1.Time{Time: noon} }), admins, false, synchronization.Leave},
		"called otherwise than its label says":   {backup(labelled(oadpv1alpha1.NabOriginNACUUIDLabel, "bank-x")), admins, false, synchronization.Distrust},
		"managed by somebody else":               {backup(labelled(oadpv1alpha1.ManagedByLabel, "me")), admins, false, synchronization.Distrust},
		"a name that no object can have":         {backup(annotated(oadpv1alpha1.NabOriginNameAnnotation, "../x")), admins, false, synchronization.Distrust},
		"a namespace that cannot be":             {backup(annotated(oadpv1alpha1.NabOriginNamespaceAnnotation, "a.b")), admins, false, synchronization.Distrust},
		"a huge spec":                            {backup(func(b *velerov1.Backup) { b.Spec.IncludedResources = []string{strings.Repeat("x", 300<<10)} }), own, false, synchronization.Distrust},
		"entered, not marked yet":                {backup(), admins, true, synchronization.Mark},
		"entered and marked":                     {backup(annotated(synchronization.StateAnnotation, "released/u1")), admins, true, synchronization.Keep},
		"the entry was removed":                  {backup(annotated(synchronization.StateAnnotation, "released/u1")), admins, false, synchronization.Make},
		"the entry was removed, never synced":    {backup(madeHere, annotated(synchronization.StateAnnotation, "released/u1")), admins, false, synchronization.Make},
		"made here: it had an object":            {backup(madeHere), admins, false, synchronization.Note},
		"one was made for it":                    {backup(annotated(synchronization.StateAnnotation, "made/u1")), admins, false, synchronization.Note},
		"a mark from the bucket counts not":      {backup(annotated(synchronization.StateAnnotation, "made/u0")), admins, false, synchronization.Make},
		"made here, from another tenant's store": {backup(madeHere), others, false, synchronization.Distrust},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, synchronization.Decide(tt.made, tt.location, tt.entered))
		})
	}
}

func TestWhatIsMadeHoldsNothingFromTheBucketButTheBackup(t *testing.T) {
	made := backup(labelled("evil", "label"), annotated("evil", "annotation"), func(b *velerov1.Backup) {
		b.Spec.IncludedNamespaces, b.Spec.IncludedClusterScopedResources = []string{"*"}, []string{"*"}
		b.Spec.Hooks.Resources = []velerov1.BackupResourceHookSpec{{Name: "hook"}}
		b.Spec.StorageLocation = "shop-own-1"
	})
	nab := synchronization.NewBackup(made, &synchronization.Location{Tenants: true, Owner: "shop", NaBSL: "own"})
	assert.Equal(t, metav1.ObjectMeta{
		Namespace: "shop", Name: "nightly", Labels: map[string]string{oadpv1alpha1.NabSyncLabel: nacuuid},
	}, nab.ObjectMeta)
	assert.Equal(t, oadpv1alpha1.NonAdminBackupSpec{BackupSpec: &velerov1.BackupSpec{
		IncludedNamespaces: []string{"shop"}, StorageLocation: "own",
	}}, nab.Spec)
}

func TestAnEntryIsForgottenOnlyWhenTheStoreWasListed(t *testing.T) {
	looked := func(after time.Duration) map[string]*synchronization.Location {
		return map[string]*synchronization.Location{"default": {Available: true, ListedAt: noon.Add(after)}}
	}
	entry := ledger.Entry{Location: "default", At: noon}
	assert.True(t, synchronization.Forgettable(entry, looked(time.Hour)))
	assert.False(t, synchronization.Forgettable(entry, looked(time.Minute)), "Velero may have begun to look before")
	assert.False(t, synchronization.Forgettable(entry, nil), "a location that is away may come back")
	assert.False(t, synchronization.Forgettable(ledger.Entry{}, looked(time.Hour)), "an administrator's own")
	away := looked(time.Hour)
	away["default"].Available = false
	assert.False(t, synchronization.Forgettable(entry, away))
}
