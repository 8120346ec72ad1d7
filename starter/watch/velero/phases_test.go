package velero

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/finalization"
	"holdfast.dev/holdfast/activities/plan"
	"holdfast.dev/holdfast/activities/synchronization"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
	"holdfast.dev/holdfast/k8s/velero"
	backupworkflow "holdfast.dev/holdfast/workflows/backup"
	restoreworkflow "holdfast.dev/holdfast/workflows/restore"
)

// backupReading is what all that reads the phase of a Velero Backup makes of it.
type backupReading struct {
	settled    bool         // its NonAdminBackup's workflow ends
	turn       bool         // it holds a turn before Velero
	position   int          // in Velero's queue, alone
	running    bool         // deleteBackup waits for Velero's end
	kept       string       // by its plan
	good       bool         // its plan's objective counts it
	restorable bool         // a restore of it is made
	back       bool         // it is offered to its tenant, found in a bucket
	file       bool         // Velero is asked for its log
	state      velero.State // in the metrics
}

// The phases after 1.18 are written by hand: no Velero has them yet. A phase that is not known is unfinished, and never good.
func TestWhatEachReaderMakesOfAPhaseOfABackup(t *testing.T) {
	const last = "last, minGood"
	ended := backupReading{settled: true, kept: "failed", file: true, state: velero.StateFinished}
	works := backupReading{turn: true, running: true, kept: "unfinished", file: true, state: velero.StateFinalizing}
	ending := works
	ending.file = false
	for phase, want := range map[velerov1.BackupPhase]backupReading{
		"Completed": {settled: true, kept: last, good: true, restorable: true, back: true, file: true, state: velero.StateFinished},
		"PartiallyFailed": {
			settled: true, kept: "failed", restorable: true, back: true, file: true, state: velero.StateFinished,
		},
		"Failed":           ended,
		"FailedValidation": {settled: true, kept: "failed", state: velero.StateFinished},
		"InProgress":       {turn: true, position: 1, running: true, kept: "unfinished", state: velero.StateInProgress},
		"Finalizing":       works,
		"Cancelling":       ending, "Canceling": ending,
		"Cancelled": ended, "Canceled": ended,
		"OfTomorrow": {turn: true, position: 1, kept: "unfinished", file: true, state: velero.StateUnknown},
	} {
		t.Run(string(phase), func(t *testing.T) { assert.Equal(t, want, readBackup(t, phase)) })
	}
}

func readBackup(t *testing.T, phase velerov1.BackupPhase) backupReading {
	t.Helper()
	const name, log = "nightly", "log"
	now := fake.PlanTime
	taken := fake.Taken(name, fake.StoreLocation, fake.Namespace)
	nab, made, location := taken[0].(*oadpv1alpha1.NonAdminBackup), taken[1].(*velerov1.Backup), taken[2].(*velerov1.BackupStorageLocation)
	made.Status.Phase = phase
	made.Status.StartTimestamp, made.Status.CompletionTimestamp = &metav1.Time{Time: now}, &metav1.Time{Time: now}
	made.CreationTimestamp = metav1.NewTime(now.Add(time.Hour))
	nab.Status.VeleroBackup.Status = made.Status.DeepCopy()
	w := fake.New(t, append(taken, fake.NADR(log, velerov1.DownloadTargetKindBackupLog, name))...)
	o, err := w.Backups.Gatherer.Gather(t.Context(), fake.Ref(name))
	require.NoError(t, err)
	require.NotNil(t, o.Backup)
	asked, err := w.Downloads(func() time.Time { return fake.DownloadTime }).Gatherer.Gather(t.Context(), fake.Ref(log))
	require.NoError(t, err)

	p := fake.BackupPlan("nightly")
	keep := &holdfastv1alpha1.Keep{Last: 1}
	judged := plan.Judge(&plan.Objects{Plan: p, Keep: keep, Backups: []plan.Backup{{Object: nab, Made: true}}}, nil, now)
	require.Len(t, judged.Retention.Kept, 1)

	source := restorespec.Source{NAB: nab, Backup: made, Location: location}
	owned := &synchronization.Location{Name: location.Name, Tenants: true, Owner: fake.Namespace, NaBSL: "store"}
	view := o.View(now)
	return backupReading{
		settled: backupworkflow.Settled(view), turn: velero.HoldsTurn(phase),
		position: velero.QueuePositions([]velerov1.Backup{*made})[made.Name], running: view.Velero.Running,
		kept: judged.Retention.Kept[0].Why, good: judged.LastGood != nil,
		restorable: restorespec.Validate(fake.NAR("again", name), source, policy.Policy{}) == nil,
		back:       synchronization.Decide(made, owned, false) == synchronization.Make,
		file:       asked.Verdict.Available, state: velero.StateOf(phase),
	}
}

// restoreReading is what all that reads the phase of a Velero Restore makes of it.
type restoreReading struct {
	settled  bool // its NonAdminRestore's workflow ends
	turn     bool
	position int
	atWork   bool // a deletion waits for Velero's end
	finalize bool // the finalization follows
	state    velero.State
}

func TestWhatEachReaderMakesOfAPhaseOfARestore(t *testing.T) {
	ended := restoreReading{settled: true, state: velero.StateFinished}
	restored := restoreReading{finalize: true, state: velero.StateFinished}
	works := restoreReading{turn: true, atWork: true, state: velero.StateFinalizing}
	for phase, want := range map[velerov1.RestorePhase]restoreReading{
		"Completed": restored, "PartiallyFailed": restored, "Failed": ended, "FailedValidation": ended,
		"InProgress": {turn: true, position: 1, atWork: true, state: velero.StateInProgress},
		"Finalizing": works, "Cancelling": works, "Canceling": works, "Cancelled": ended, "Canceled": ended,
		"OfTomorrow": {turn: true, position: 1, state: velero.StateUnknown},
	} {
		t.Run(string(phase), func(t *testing.T) { assert.Equal(t, want, readRestore(t, phase)) })
	}
}

func readRestore(t *testing.T, phase velerov1.RestorePhase) restoreReading {
	t.Helper()
	const name, again = "nightly", "again"
	objects := fake.RestoredFrom(again, name)
	nar, made := objects[0].(*oadpv1alpha1.NonAdminRestore), objects[1].(*velerov1.Restore)
	made.Status.Phase = phase
	lifecycle.ApplyVerdict(nar, check.Verdict{Accepted: true, Reason: "RestoreAccepted"}, made.Name, fake.OADPNamespace)
	lifecycle.ApplyCreated(nar)
	nar.Status.VeleroRestore.Status = made.Status.DeepCopy()
	nar.Finalizers = []string{oadpv1alpha1.NarFinalizer}
	w := fake.New(t, append(append([]client.Object{}, objects...), fake.Taken(name, fake.AdminLocation, "")...)...)
	o, err := w.Restores.Gatherer.Gather(t.Context(), fake.Ref(again))
	require.NoError(t, err)
	require.NotNil(t, o.Restore)
	subject := finalization.Subject{NAR: nar, Restore: made}
	view := o.View()
	return restoreReading{
		settled: restoreworkflow.Settled(view), turn: velero.HoldsTurn(phase),
		position: velero.QueuePositions([]velerov1.Restore{*made})[made.Name], atWork: view.Velero.AtWork,
		finalize: subject.Due(), state: velero.StateOf(phase),
	}
}
