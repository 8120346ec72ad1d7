package progress_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/kstatus"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/starter/tenant/progress"
)

const oadpNamespace = "openshift-adp"

func pending() *oadpv1alpha1.NonAdminBackup {
	return &oadpv1alpha1.NonAdminBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", Generation: 2}}
}

func refused(reason, message string) *oadpv1alpha1.NonAdminBackup {
	nab := pending()
	lifecycle.ApplyVerdict(nab, check.Verdict{Reason: reason, Message: message}, "b", oadpNamespace)
	return nab
}

// made is a backup with a Velero Backup.
func made(status velerov1.BackupStatus, changes ...func(*oadpv1alpha1.NonAdminBackup)) *oadpv1alpha1.NonAdminBackup {
	nab := pending()
	lifecycle.ApplyVerdict(nab, lifecycle.Acceptance(nab), "b", oadpNamespace)
	lifecycle.ApplyCreated(nab)
	nab.Status.VeleroBackup.Status = &status
	for _, change := range changes {
		change(nab)
	}
	return nab
}

// summarized is the object as Holdfast has written it.
func summarized[T client.Object](object T) T {
	kstatus.Summarize(object.DeepCopyObject().(T), object)
	return object
}

func queued(at int) func(*oadpv1alpha1.NonAdminBackup) {
	return func(nab *oadpv1alpha1.NonAdminBackup) {
		nab.Status.QueueInfo = &oadpv1alpha1.QueueInfo{EstimatedQueuePosition: at}
	}
}

func TestHowFarABackupIs(t *testing.T) {
	t.Parallel()
	waiting := pending()
	lifecycle.ApplyVerdict(waiting, lifecycle.Acceptance(waiting), "b", oadpNamespace)
	lifecycle.ApplyWaiting(waiting)
	queued(7)(waiting)
	copying := func(nab *oadpv1alpha1.NonAdminBackup) {
		k8s.SetCondition(&nab.Status.Conditions, 2, oadpv1alpha1.NonAdminConditionVolumesCopied, metav1.ConditionFalse,
			oadpv1alpha1.ReasonCopying, "2 of 5 volumes, 1.0 GiB of 4.0 GiB")
	}
	stall := func(nab *oadpv1alpha1.NonAdminBackup) { lifecycle.ApplyStall(nab) }
	remove := func(nab *oadpv1alpha1.NonAdminBackup) { lifecycle.ApplyBackup(nab, "b", nil, oadpNamespace) }
	spoil := func(nab *oadpv1alpha1.NonAdminBackup) {
		lifecycle.ApplyVerdict(nab, check.Verdict{Reason: oadpv1alpha1.ReasonInvalidBackupSpec, Message: "an edit"}, "b", oadpNamespace)
	}
	edited := summarized(made(velerov1.BackupStatus{Phase: velerov1.BackupPhaseCompleted}))
	edited.Generation++
	deleting := summarized(made(velerov1.BackupStatus{Phase: velerov1.BackupPhaseCompleted}))
	deleting.Spec.DeleteBackup = true
	moving := velerov1.BackupStatus{
		Phase: velerov1.BackupPhaseInProgress, Progress: &velerov1.BackupProgress{TotalItems: 14, ItemsBackedUp: 3},
	}
	for name, test := range map[string]struct {
		of      *oadpv1alpha1.NonAdminBackup
		outcome progress.Outcome
		want    string
	}{
		"not read yet":                         {pending(), progress.Running, "Pending: the spec is not validated yet"},
		"refused":                              {summarized(refused("InvalidBackupSpec", "no")), progress.Bad, "InvalidBackupSpec: no"},
		"held back by a quota":                 {summarized(refused("QuotaExceeded", "20 of 20")), progress.Running, "QuotaExceeded: 20 of 20"},
		"waiting for its turn":                 {summarized(waiting), progress.Running, "WaitingForTurn: position 7"},
		"in Velero's queue":                    {summarized(made(velerov1.BackupStatus{Phase: "Queued"}, queued(3))), progress.Running, "Pending: position 3"},
		"in progress":                          {summarized(made(moving, queued(1), copying)), progress.Running, "InProgress, 3 of 14 items, 2 of 5 volumes, 1.0 GiB of 4.0 GiB"},
		"its end lost by Velero":               {summarized(made(moving, stall)), progress.Bad, "VeleroFinalStatusLost, 3 of 14 items: " + oadpv1alpha1.MessageVeleroStalled},
		"completed":                            {summarized(made(velerov1.BackupStatus{Phase: "Completed", Warnings: 2})), progress.Good, "Completed: 2 warnings"},
		"partially failed":                     {summarized(made(velerov1.BackupStatus{Phase: "PartiallyFailed", Errors: 1})), progress.Bad, "PartiallyFailed: Velero has ended it as PartiallyFailed (1 error)"},
		"failed":                               {summarized(made(velerov1.BackupStatus{Phase: "Failed", FailureReason: "restarted"})), progress.Bad, "Failed: Velero has ended it as Failed: restarted"},
		"expired":                              {summarized(made(velerov1.BackupStatus{Phase: "Completed"}, remove)), progress.Bad, "VeleroBackupNotFound: " + oadpv1alpha1.MessageVeleroBackupNotFound},
		"complete, with a bad edit since":      {summarized(made(velerov1.BackupStatus{Phase: "Completed"}, spoil)), progress.Good, "Completed"},
		"complete, with an edit not read yet":  {edited, progress.Running, "Pending: the spec is not validated yet"},
		"complete before there were summaries": {made(velerov1.BackupStatus{Phase: "Completed"}), progress.Good, "Completed"},
		"being deleted":                        {deleting, progress.Bad, "Deleting: it is being deleted"},
		"in a phase of its future":             {summarized(made(velerov1.BackupStatus{Phase: "Verifying"})), progress.Running, "Verifying: Velero has it in phase Verifying"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := progress.Of(test.of)
			assert.Equal(t, test.outcome, state.Outcome)
			assert.Equal(t, test.want, state.String())
		})
	}
}

func TestARestoreIsOverWhenItsFinalizationIs(t *testing.T) {
	t.Parallel()
	of := func(status velerov1.RestoreStatus, finalization *oadpv1alpha1.RestoreFinalization, reason string) progress.State {
		nar := &oadpv1alpha1.NonAdminRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "undo", Generation: 1}}
		lifecycle.ApplyVerdict(nar, lifecycle.Acceptance(nar), "r", oadpNamespace)
		lifecycle.ApplyCreated(nar)
		nar.Status.VeleroRestore.Status, nar.Status.Finalization = &status, finalization
		if reason != "" {
			over := metav1.ConditionTrue
			if reason == oadpv1alpha1.ReasonFinalizing {
				over = metav1.ConditionFalse
			}
			k8s.SetCondition(&nar.Status.Conditions, 1, oadpv1alpha1.NonAdminConditionFinalized, over, reason, "as it is")
		}
		return progress.Of(summarized(nar))
	}
	completed := velerov1.RestoreStatus{
		Phase: velerov1.RestorePhaseCompleted, Warnings: 1, Progress: &velerov1.RestoreProgress{TotalItems: 3, ItemsRestored: 3},
	}
	items := progress.Count{Done: 3, Total: 3}
	running := &oadpv1alpha1.RestoreFinalization{Phase: "Finalizing", Tasks: []oadpv1alpha1.FinalizationTask{
		{Name: "volumes", Phase: "Completed"}, {Name: "validation", Phase: "InProgress"},
	}}
	assert.Equal(t, progress.State{Phase: "Finalizing", Items: items, Message: "task validation"}, of(completed, running, "Finalizing"))
	good := &oadpv1alpha1.RestoreFinalization{Phase: "Completed", Warnings: 1}
	assert.Equal(t, progress.State{Phase: "Completed", Items: items, Message: "2 warnings", Outcome: progress.Good},
		of(completed, good, "FinalizationCompleted"))
	bad := &oadpv1alpha1.RestoreFinalization{Phase: "PartiallyFailed", Errors: 1}
	assert.Equal(t, progress.State{
		Phase: "FinalizationPartiallyFailed", Items: items, Message: "as it is (1 error, 1 warning)", Outcome: progress.Bad,
	}, of(completed, bad, "FinalizationPartiallyFailed"))
	failed := velerov1.RestoreStatus{Phase: velerov1.RestorePhaseFailed, FailureReason: "restarted"}
	assert.Equal(t, progress.State{Phase: "Failed", Message: "Velero has ended it as Failed: restarted", Outcome: progress.Bad},
		of(failed, nil, ""))
}

func TestADownloadIsOverWithItsURL(t *testing.T) {
	t.Parallel()
	of := func(kind oadpv1alpha1.NonAdminCondition, status metav1.ConditionStatus, reason, message string) progress.State {
		nadr := &oadpv1alpha1.NonAdminDownloadRequest{ObjectMeta: metav1.ObjectMeta{Name: "log", Generation: 1}}
		k8s.SetCondition(&nadr.Status.Conditions, 1, kind, status, reason, message)
		return progress.Of(summarized(nadr))
	}
	assert.Equal(t, progress.State{Phase: "Requested", Message: "waits"},
		of(oadpv1alpha1.NonAdminConditionProcessed, metav1.ConditionFalse, "Requested", "waits"))
	assert.Equal(t, progress.Good, of(oadpv1alpha1.NonAdminConditionProcessed, metav1.ConditionTrue, "Success", "").Outcome)
	assert.Equal(t, progress.State{Phase: "Error", Message: "not yours", Outcome: progress.Bad},
		of(oadpv1alpha1.NonAdminConditionNonAdminBackupStorageLocationNotUsed, metav1.ConditionTrue, "Error", "not yours"))
}

func TestADeletionShowsWhatVeleroCouldNot(t *testing.T) {
	t.Parallel()
	nab := made(velerov1.BackupStatus{Phase: velerov1.BackupPhaseCompleted})
	assert.Equal(t, progress.State{Phase: "Deleting"}, progress.OfDeletion(nab))
	nab.Status.VeleroDeleteBackupRequest = &oadpv1alpha1.VeleroDeleteBackupRequest{
		Status: &velerov1.DeleteBackupRequestStatus{Errors: []string{"no bucket"}},
	}
	assert.Equal(t, "Deleting: Velero could not delete it; the request is repeated: no bucket", progress.OfDeletion(nab).String())
}

func TestWhichRunAPlanHasMadeOnRequest(t *testing.T) {
	t.Parallel()
	of := func(requested, handled, last string) (string, progress.State) {
		plan := &holdfastv1alpha1.BackupPlan{Status: holdfastv1alpha1.BackupPlanStatus{HandledRunNow: handled}}
		plan.Annotations = map[string]string{holdfastv1alpha1.AnnotationRunNow: requested}
		if last != "" {
			plan.Status.LastRun = &holdfastv1alpha1.Run{Name: last, Time: metav1.NewTime(time.Unix(0, 0))}
		}
		return progress.RunOf(plan, "mine", "before")
	}
	for title, test := range map[string]struct {
		requested, handled, last, want string
		outcome                        progress.Outcome
	}{
		"not seen yet":                  {"mine", "", "before", "", progress.Running},
		"made":                          {"mine", "mine", "made", "made", progress.Good},
		"refused":                       {"mine", "mine", "before", "", progress.Bad},
		"refused, the plan has none":    {"mine", "mine", "", "", progress.Bad},
		"another has its place":         {"yours", "before", "before", "", progress.Running},
		"another was made in its place": {"yours", "yours", "made", "made", progress.Good},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			name, state := of(test.requested, test.handled, test.last)
			assert.Equal(t, test.want, name)
			assert.Equal(t, test.outcome, state.Outcome)
		})
	}
}

func TestAPlanThatIsNotAllowedMakesNoRun(t *testing.T) {
	t.Parallel()
	plan := &holdfastv1alpha1.BackupPlan{}
	plan.Status.Conditions = []metav1.Condition{{
		Type: holdfastv1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: holdfastv1alpha1.ReasonForbidden, Message: "too often",
	}}
	_, state := progress.RunOf(plan, "mine", "")
	assert.Equal(t, progress.State{Phase: "ForbiddenByPolicy", Message: "too often", Outcome: progress.Bad}, state)
}
