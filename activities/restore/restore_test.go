package restore_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/restore"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
	restoreworkflow "holdfast.dev/holdfast/workflows/restore"
)

const (
	name    = "again"
	nightly = "nightly"
	victims = "crew-again-f47ac10b-58cc-4372-a567-0e02b2c3d479"
)

var ours = fake.VeleroName(name)

func gather(t *testing.T, w *fake.World) *restore.Objects {
	t.Helper()
	objects, err := w.Restores.Gatherer.Gather(t.Context(), fake.Ref(name))
	require.NoError(t, err)
	return objects
}

// madeFor returns a Velero Restore that names team's or another namespace's NonAdminRestore as its origin.
func madeFor(namespace, restoreName string) *velerov1.Restore {
	owner := fake.NAR(name, nightly)
	owner.Namespace = namespace
	made := velero.NewRestore(owner, restoreName, fake.OADPNamespace, velerov1.RestoreSpec{BackupName: "b"})
	made.Status.Phase = velerov1.RestorePhaseCompleted
	return made
}

func recorded(nacuuid string) *oadpv1alpha1.NonAdminRestore {
	nar := fake.NAR(name, nightly)
	nar.Status.VeleroRestore = &oadpv1alpha1.VeleroRestore{NACUUID: nacuuid, Name: nacuuid, Namespace: fake.OADPNamespace}
	return nar
}

func TestOnlyAVeleroRestoreOfThisOriginBelongsToARestore(t *testing.T) {
	unlabelled := madeFor(fake.Namespace, ours)
	unlabelled.Labels = nil
	tests := map[string]struct {
		there       []client.Object
		wantName    string
		wantExists  bool
		wantForeign bool
		wantAdopted bool
	}{
		"nothing there yet":                      {[]client.Object{fake.NAR(name, nightly)}, ours, false, false, false},
		"its own":                                {[]client.Object{fake.NAR(name, nightly), madeFor(fake.Namespace, ours)}, ours, true, false, false},
		"another tenant's under its name":        {[]client.Object{fake.NAR(name, nightly), madeFor("crew", ours)}, ours, false, true, false},
		"one without our label under its name":   {[]client.Object{fake.NAR(name, nightly), unlabelled}, ours, false, true, false},
		"a status that names another tenant's":   {[]client.Object{recorded(victims), madeFor("crew", victims)}, ours, false, false, false},
		"a status that names nothing":            {[]client.Object{recorded(victims)}, ours, false, false, false},
		"a status that names what nothing can":   {[]client.Object{recorded("../x")}, ours, false, false, false},
		"a status that names one of another day": {[]client.Object{recorded("team-old-1"), madeFor(fake.Namespace, "team-old-1")}, "team-old-1", true, false, true},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			o := gather(t, fake.New(t, test.there...))
			assert.Equal(t, test.wantName, o.RestoreName)
			assert.Equal(t, test.wantExists, o.Restore != nil)
			assert.Equal(t, test.wantForeign, o.Foreign)
			assert.Equal(t, test.wantAdopted, o.Adopted)
		})
	}
}

func TestWhatIsNotThereIsNoError(t *testing.T) {
	other := fake.NAR(name, nightly)
	other.UID = "uid-2"
	for title, objects := range map[string][]client.Object{
		"no object": nil, "another object of the old name": {other},
	} {
		t.Run(title, func(t *testing.T) {
			o := gather(t, fake.New(t, objects...))
			assert.Equal(t, contract.RestoreView{}, o.View())
			assert.True(t, restoreworkflow.Settled(o.View()))
		})
	}
}

// A backup is known by its Velero Backup's origin, whatever the NonAdminBackup says of it.
func TestABackupThatIsNotTheTenantsIsNotRestored(t *testing.T) {
	forged := fake.NAB(nightly)
	forged.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
	forged.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{NACUUID: fake.VeleroName("theirs"), Name: fake.VeleroName("theirs")}
	theirs := fake.Taken("theirs", fake.AdminLocation, "")
	for _, object := range theirs[1:] {
		if annotations := object.GetAnnotations(); annotations != nil {
			annotations[oadpv1alpha1.NabOriginNamespaceAnnotation] = "crew"
		}
	}
	labelled := forged.DeepCopy()
	labelled.Labels = map[string]string{oadpv1alpha1.NabSyncLabel: fake.VeleroName("theirs")}
	named := fake.NAB(nightly)
	named.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
	for title, test := range map[string]struct {
		nab  *oadpv1alpha1.NonAdminBackup
		spec string
	}{
		"by its status":           {forged, nightly},
		"by its label":            {labelled, nightly},
		"by the restore's spec":   {named, fake.VeleroName("theirs")},
		"by a name of their own":  {named, "theirs"},
		"by another namespace's ": {named, "crew/theirs"},
	} {
		t.Run(title, func(t *testing.T) {
			w := fake.New(t, append([]client.Object{test.nab, fake.NAR(name, test.spec)}, theirs[1:]...)...)
			verdict, err := w.Restores.Gatherer.Judge(t.Context(), gather(t, w))
			require.NoError(t, err)
			assert.False(t, verdict.Accepted)
			assert.Equal(t, "InvalidRestoreSpec", verdict.Reason)
		})
	}
}

func TestWhenARestoreIsSettled(t *testing.T) {
	done := contract.RestoreView{
		Found: true, Finalizer: true, SpecValidated: true, Accepted: true, EverCreated: true, Phase: "Created",
		Velero: contract.VeleroRestoreView{Exists: true, Finished: true, Phase: "Completed", MirroredPhase: "Completed"},
	}
	tests := map[string]struct {
		change func(*contract.RestoreView)
		want   bool
	}{
		"Velero is done":              {func(*contract.RestoreView) {}, true},
		"the finalization is due":     {func(v *contract.RestoreView) { v.FinalizationDue = true }, false},
		"Velero works":                {func(v *contract.RestoreView) { v.Velero.Finished = false }, false},
		"the phase is not mirrored":   {func(v *contract.RestoreView) { v.Velero.MirroredPhase = "InProgress" }, false},
		"the finalizer was taken off": {func(v *contract.RestoreView) { v.Finalizer = false }, false},
		"the spec was edited":         {func(v *contract.RestoreView) { v.SpecValidated = false }, false},
		"it was rejected after that":  {func(v *contract.RestoreView) { v.Accepted = false }, true},
		"it is being deleted":         {func(v *contract.RestoreView) { v.BeingDeleted = true }, false},
		"it was let go":               {func(v *contract.RestoreView) { v.BeingDeleted, v.Finalizer = true, false }, true},
		"its Velero Restore vanished": {func(v *contract.RestoreView) { v.Velero.Exists = false }, false},
		"which is reported":           {func(v *contract.RestoreView) { v.Velero.Exists, v.AbsenceReported = false, true }, true},
		"it is new":                   {func(v *contract.RestoreView) { *v = contract.RestoreView{Found: true} }, false},
		"it backs off": {func(v *contract.RestoreView) {
			*v = contract.RestoreView{Found: true, SpecValidated: true, Phase: "BackingOff"}
		}, true},
		"it was accepted out of that":  {func(v *contract.RestoreView) { v.Phase, v.EverCreated = "BackingOff", false }, false},
		"it backs off, newly accepted": {func(v *contract.RestoreView) { v.Phase, v.SpecValidated = "BackingOff", false }, false},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			v := done
			test.change(&v)
			assert.Equal(t, test.want, restoreworkflow.Settled(v))
		})
	}
}
