package synchronize_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/released"
	"holdfast.dev/holdfast/k8s/synchronize"
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
	admins := &synchronize.Location{Name: "default"}
	own := &synchronize.Location{Name: "l", Tenants: true, Owner: "shop", NaBSL: "own"}
	others := &synchronize.Location{Name: "l", Tenants: true, Owner: "bank", NaBSL: "own"}
	ownerless := &synchronize.Location{Name: "l", Tenants: true}
	tests := map[string]struct {
		made     *velerov1.Backup
		location *synchronize.Location
		entered  bool
		want     synchronize.Action
	}{
		"brought back from an admin's location":  {backup(), admins, false, synchronize.Make},
		"brought back from its tenant's own":     {backup(), own, false, synchronize.Make},
		"partially failed":                       {backup(phase(velerov1.BackupPhasePartiallyFailed)), admins, false, synchronize.Make},
		"from another tenant's bucket":           {backup(), others, false, synchronize.Distrust},
		"from the bucket of a location gone":     {backup(), ownerless, false, synchronize.Distrust},
		"location unknown":                       {backup(), nil, false, synchronize.Leave},
		"failed":                                 {backup(phase(velerov1.BackupPhaseFailed)), admins, false, synchronize.Leave},
		"being deleted by Velero":                {backup(phase(velerov1.BackupPhaseDeleting)), admins, false, synchronize.Leave},
		"in progress":                            {backup(phase(velerov1.BackupPhaseInProgress)), admins, false, synchronize.Leave},
		"without an end":                         {backup(func(b *velerov1.Backup) { b.Status.CompletionTimestamp = nil }), admins, false, synchronize.Leave},
		"object being deleted":                   {backup(func(b *velerov1.Backup) { b.DeletionTimestamp = &metav1.Time{Time: noon} }), admins, false, synchronize.Leave},
		"called otherwise than its label says":   {backup(labelled(oadpv1alpha1.NabOriginNACUUIDLabel, "bank-x")), admins, false, synchronize.Distrust},
		"managed by somebody else":               {backup(labelled(oadpv1alpha1.ManagedByLabel, "me")), admins, false, synchronize.Distrust},
		"a name that no object can have":         {backup(annotated(oadpv1alpha1.NabOriginNameAnnotation, "../x")), admins, false, synchronize.Distrust},
		"a namespace that cannot be":             {backup(annotated(oadpv1alpha1.NabOriginNamespaceAnnotation, "a.b")), admins, false, synchronize.Distrust},
		"a huge spec":                            {backup(func(b *velerov1.Backup) { b.Spec.IncludedResources = []string{strings.Repeat("x", 300<<10)} }), own, false, synchronize.Distrust},
		"entered, not marked yet":                {backup(), admins, true, synchronize.Mark},
		"entered and marked":                     {backup(annotated(synchronize.StateAnnotation, "released/u1")), admins, true, synchronize.Keep},
		"the entry was removed":                  {backup(annotated(synchronize.StateAnnotation, "released/u1")), admins, false, synchronize.Make},
		"the entry was removed, never synced":    {backup(madeHere, annotated(synchronize.StateAnnotation, "released/u1")), admins, false, synchronize.Make},
		"made here: it had an object":            {backup(madeHere), admins, false, synchronize.Note},
		"one was made for it":                    {backup(annotated(synchronize.StateAnnotation, "made/u1")), admins, false, synchronize.Note},
		"a mark from the bucket counts not":      {backup(annotated(synchronize.StateAnnotation, "made/u0")), admins, false, synchronize.Make},
		"made here, from another tenant's store": {backup(madeHere), others, false, synchronize.Distrust},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, synchronize.Decide(tt.made, tt.location, tt.entered))
		})
	}
}

func TestWhatIsMadeHoldsNothingFromTheBucketButTheBackup(t *testing.T) {
	made := backup(labelled("evil", "label"), annotated("evil", "annotation"), func(b *velerov1.Backup) {
		b.Spec.IncludedNamespaces, b.Spec.IncludedClusterScopedResources = []string{"*"}, []string{"*"}
		b.Spec.Hooks.Resources = []velerov1.BackupResourceHookSpec{{Name: "hook"}}
		b.Spec.StorageLocation = "shop-own-1"
	})
	nab := synchronize.NewBackup(made, &synchronize.Location{Tenants: true, Owner: "shop", NaBSL: "own"})
	assert.Equal(t, metav1.ObjectMeta{
		Namespace: "shop", Name: "nightly", Labels: map[string]string{oadpv1alpha1.NabSyncLabel: nacuuid},
	}, nab.ObjectMeta)
	assert.Equal(t, oadpv1alpha1.NonAdminBackupSpec{BackupSpec: &velerov1.BackupSpec{
		IncludedNamespaces: []string{"shop"}, StorageLocation: "own",
	}}, nab.Spec)
}

func TestAnEntryIsForgottenOnlyWhenTheStoreWasLookedInto(t *testing.T) {
	looked := func(after time.Duration) map[string]*synchronize.Location {
		return map[string]*synchronize.Location{"default": {Available: true, LookedAt: noon.Add(after)}}
	}
	entry := released.Entry{Location: "default", At: noon}
	assert.True(t, synchronize.Forgettable(entry, looked(time.Hour)))
	assert.False(t, synchronize.Forgettable(entry, looked(time.Minute)), "Velero may have begun to look before")
	assert.False(t, synchronize.Forgettable(entry, nil), "a location that is away may come back")
	assert.False(t, synchronize.Forgettable(released.Entry{}, looked(time.Hour)), "an administrator's own")
	away := looked(time.Hour)
	away["default"].Available = false
	assert.False(t, synchronize.Forgettable(entry, away))
}
