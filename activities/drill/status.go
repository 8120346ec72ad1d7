package drill

import (
	"fmt"
	"slices"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/drill/gather"
	"holdfast.dev/holdfast/activities/verdict"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/k8s/velero"
)

// finding is a finding of a check; NotVerified: it says what a drill cannot verify, and fails nothing.
type finding struct {
	notVerified bool
	message     string
	// inconclusive: the check has no result.
	inconclusive bool
}

func wrong(format string, args ...any) finding { return finding{message: fmt.Sprintf(format, args...)} }

func inconclusive(format string, args ...any) finding {
	return finding{notVerified: true, inconclusive: true, message: fmt.Sprintf(format, args...)}
}

func notVerified(format string, args ...any) finding {
	return finding{notVerified: true, message: fmt.Sprintf(format, args...)}
}

// add adds findings to a status.
func add(status *holdfastv1alpha1.RestoreDrillStatus, check string, findings ...finding) {
	for _, found := range findings {
		result := holdfastv1alpha1.DrillFailed
		if found.notVerified {
			result = holdfastv1alpha1.DrillNotVerified
		}
		verdict.Add(&status.Findings, &status.MoreFindings, check, result, found.message)
	}
}

// setVerified sets the condition.
func setVerified(drill *holdfastv1alpha1.RestoreDrill, status metav1.ConditionStatus, reason, message string) {
	verdict.Set(&drill.Status.Conditions, drill.Generation, status, reason, message)
}

// refuse writes that the backup cannot be restored in this way now. What was made for the drill goes.
func (o *objects) refuse(why string) {
	setVerified(o.Drill, metav1.ConditionUnknown, holdfastv1alpha1.ReasonNotVerified, why)
	o.Drill.Status.Concluded = o.now()
	if o.Namespace != nil || o.Restore != nil {
		o.Drill.Status.Phase = holdfastv1alpha1.DrillCleaningUp
		return
	}
	o.Drill.Status.Phase, o.Drill.Status.Ended = holdfastv1alpha1.DrillEnded, o.now()
}

// record writes the result of a check.
func (o *objects) record(name string, findings []finding) {
	status := &o.Drill.Status
	check := gather.Pending(status)
	if check == nil || check.Name != name {
		return // written by an earlier attempt
	}
	check.Result, check.Ended = holdfastv1alpha1.DrillPassed, o.now()
	for _, found := range findings {
		switch {
		case !found.notVerified:
			check.Result = holdfastv1alpha1.DrillFailed
		case found.inconclusive && check.Result == holdfastv1alpha1.DrillPassed:
			check.Result = holdfastv1alpha1.DrillNotVerified
		}
	}
	status.Phase = holdfastv1alpha1.DrillChecking
	add(status, name, findings...)
	if name == holdfastv1alpha1.CheckWorkloads && check.Result == holdfastv1alpha1.DrillPassed {
		status.Ready = o.now()
		if restored := status.Restored; restored != nil {
			since := *restored
			if o.ready.After(since.Time) {
				since = metav1.NewTime(o.ready)
			}
			status.Ready = &since
			o.measured().ReadySeconds = verdict.Seconds(status.Ready.Sub(restored.Time))
		}
	}
}

func (o *objects) measured() *holdfastv1alpha1.DrillMeasured {
	if o.Drill.Status.Measured == nil {
		o.Drill.Status.Measured = &holdfastv1alpha1.DrillMeasured{}
	}
	return o.Drill.Status.Measured
}

// mirror notes what Velero says about the restore.
func (o *objects) mirror() {
	if o.Restore == nil || o.Drill.Status.Restored != nil {
		return
	}
	made := &o.Restore.Status
	if view := o.View().Velero; view.Restored && made.CompletionTimestamp != nil {
		completed := *made.CompletionTimestamp
		o.Drill.Status.Restored = &completed
		if made.StartTimestamp != nil {
			o.measured().RestoreSeconds = verdict.Seconds(completed.Sub(made.StartTimestamp.Time))
		}
	}
}

// conclude writes the verdict. gone is the message if its backup was deleted: nothing bad is said of that.
func (o *objects) conclude(longestKeep time.Duration, gone string) {
	status := &o.Drill.Status
	if status.Concluded != nil {
		return
	}
	o.mirror()
	verified, reason, message := o.verdict()
	if gone != "" && verified == metav1.ConditionFalse {
		verified, reason, message = metav1.ConditionUnknown, holdfastv1alpha1.ReasonNotVerified, gone
	}
	setVerified(o.Drill, verified, reason, message)
	status.Concluded, status.Phase = o.now(), holdfastv1alpha1.DrillCleaningUp
	if keep := min(gather.DurationOf(o.Drill.Spec.KeepOnFailure), longestKeep); verified == metav1.ConditionFalse && keep > 0 {
		until := metav1.NewTime(o.At.Add(keep))
		status.KeptUntil, status.Phase = &until, holdfastv1alpha1.DrillKept
	}
}

// verdict judges the drill by its checks and by what became of the restore.
func (o *objects) verdict() (verified metav1.ConditionStatus, reason, message string) {
	switch {
	case o.Occupied != "":
		return unknown(o.Occupied + " exists and was not made for this drill: ask an administrator to remove it")
	case o.Drill.Status.Started == nil:
		return unknown("the restore was not started within " + o.Drill.Spec.Timeout + " after the drill got its namespace")
	case o.Restore == nil:
		return unknown("the drill's Velero Restore was deleted before the drill was over")
	case !o.hasNamespace():
		return unknown(fmt.Sprintf("Namespace %s was deleted before the drill was over", o.Name))
	case o.Restore.Status.Phase == velerov1.RestorePhaseFailedValidation, interrupted(o.Restore), unread(o.Restore):
		return unknown(o.failure())
	case velero.Finished(o.Restore.Status.Phase) && !velero.Usable(o.Restore.Status.Phase):
		return metav1.ConditionFalse, holdfastv1alpha1.ReasonRestoreFailed, o.failure()
	case phaseOf(o) == string(velerov1.RestorePhaseNew):
		return unknown("Velero did not begin the restore within " + o.Drill.Spec.Timeout)
	case !o.View().Velero.Restored:
		return metav1.ConditionFalse, holdfastv1alpha1.ReasonRestoreFailed, fmt.Sprintf(
			"Velero did not restore the backup within %s: its Restore is in phase %s", o.Drill.Spec.Timeout, phaseOf(o))
	}
	return o.verdictOfChecks()
}

// verdictOfChecks judges a drill of which Velero has restored what it could.
func (o *objects) verdictOfChecks() (verified metav1.ConditionStatus, reason, message string) {
	status := &o.Drill.Status
	of := func(result holdfastv1alpha1.DrillResult) bool {
		return slices.ContainsFunc(status.Checks, func(check holdfastv1alpha1.DrillCheck) bool { return check.Result == result })
	}
	compared := slices.ContainsFunc(status.Checks, func(check holdfastv1alpha1.DrillCheck) bool {
		return check.Name == holdfastv1alpha1.CheckObjects && check.Result == holdfastv1alpha1.DrillPassed
	})
	switch made := &o.Restore.Status; {
	case of(holdfastv1alpha1.DrillFailed):
		return metav1.ConditionFalse, holdfastv1alpha1.ReasonChecksFailed, o.foremost(holdfastv1alpha1.DrillFailed)
	case of(holdfastv1alpha1.DrillNotVerified), of(holdfastv1alpha1.DrillPending):
		return unknown(o.foremost(holdfastv1alpha1.DrillNotVerified))
	case made.Phase == velerov1.RestorePhasePartiallyFailed && !compared:
		return unknown(fmt.Sprintf("Velero reports %s, which check objects would judge", verdict.Count(int64(made.Errors), "error")))
	case made.Progress != nil && made.Progress.TotalItems == 0:
		return unknown(nothingRestored)
	}
	text := "restored in " + verdict.Took(o.measured().RestoreSeconds)
	if compared {
		text = verdict.Count(o.measured().Objects, "object") + " " + text
	}
	if len(status.Findings) > 0 {
		return metav1.ConditionTrue, holdfastv1alpha1.ReasonVerifiedInPart, text + "; status.findings says what a drill does not verify"
	}
	return metav1.ConditionTrue, holdfastv1alpha1.ReasonVerified, text
}

const nothingRestored = "the backup holds nothing that a drill restores"

// unknown is the verdict of a drill that says nothing about its backup.
func unknown(message string) (metav1.ConditionStatus, string, string) {
	return metav1.ConditionUnknown, holdfastv1alpha1.ReasonNotVerified, message
}

// foremost is the first finding with that result, and says how many more there are. The NonAdminBackup shows it, too.
func (o *objects) foremost(result holdfastv1alpha1.DrillResult) string {
	status := &o.Drill.Status
	first, more := "a check did not run", status.MoreFindings-1
	for _, found := range slices.Backward(status.Findings) {
		if found.Result == result {
			first = found.Message
			more++
		}
	}
	if more <= 0 {
		return first
	}
	const room = 100 // for what follows
	return fmt.Sprintf("%s (and %d more, see RestoreDrill %s)", shorten.Text(first, verdict.MaxMessage-room), more, o.Drill.Name)
}

// interrupted reports whether Velero has restarted during the restore: it calls that a failure.
func interrupted(made *velerov1.Restore) bool {
	return made.Status.Phase == velerov1.RestorePhaseFailed &&
		strings.Contains(made.Status.FailureReason, "during the server starting")
}

// unread reports whether Velero could not read the backup's archive for another reason than that it is not there.
func unread(made *velerov1.Restore) bool {
	why := strings.ToLower(made.Status.FailureReason)
	absences := []string{"not found", "notfound", "nosuchkey", "does not exist", "doesn't exist"}
	absent := slices.ContainsFunc(absences, func(text string) bool { return strings.Contains(why, text) })
	return made.Status.Phase == velerov1.RestorePhaseFailed && strings.Contains(why, "error downloading backup") && !absent
}

func phaseOf(o *objects) string {
	if phase := o.Restore.Status.Phase; phase != "" {
		return string(phase)
	}
	return "New"
}

// failure is Velero's reason.
func (o *objects) failure() string {
	made := &o.Restore.Status
	if why := strings.Join(append(made.ValidationErrors, made.FailureReason), "; "); strings.Trim(why, "; ") != "" {
		return fmt.Sprintf("Velero's Restore is %s: %s", made.Phase, strings.Trim(why, "; "))
	}
	return fmt.Sprintf("Velero's Restore is %s", made.Phase)
}
