package backup

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/verdict"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// HasVerdict reports whether a drill says that its backup is good, or that it is not. One that could not be made says nothing.
func HasVerdict(drill *holdfastv1alpha1.RestoreDrill) bool {
	verified := verdict.Of(drill.Status.Conditions)
	return drill.Status.Concluded != nil && verified != nil && verified.Status != metav1.ConditionUnknown
}

// NoteDrill notes a drill whose verdict the status is to show: it is about this backup, and newer than what the status shows and
// than the drills that were noted before.
func (o *Objects) NoteDrill(drill *holdfastv1alpha1.RestoreDrill) {
	if o.NAB == nil || !HasVerdict(drill) || drill.Status.BackupUID != o.NAB.UID || drill.Namespace != o.NAB.Namespace {
		return
	}
	last := o.NAB.Status.NewestDrill()
	if o.drill != nil {
		last = recordOf(o.drill)
	}
	if last == nil || newer(recordOf(drill), last) {
		o.drill = drill
	}
}

// DrillDue is the name of the drill whose verdict is to be shown; empty if there is none.
func (o *Objects) DrillDue() string {
	if o.drill == nil {
		return ""
	}
	return o.drill.Name
}

// newer orders drills also if they have ended in the same second.
func newer(drill, than *oadpv1alpha1.BackupDrill) bool {
	if order := drill.Concluded.Compare(than.Concluded.Time); order != 0 {
		return order > 0
	}
	return drill.Name > than.Name
}

func recordOf(drill *holdfastv1alpha1.RestoreDrill) *oadpv1alpha1.BackupDrill {
	record := &oadpv1alpha1.BackupDrill{Name: drill.Name, Concluded: *drill.Status.Concluded}
	if measured := drill.Status.Measured; measured != nil {
		record.RestoreSeconds, record.ReadySeconds = measured.RestoreSeconds, measured.ReadySeconds
	}
	return record
}

// readDrill reads the drill that the step names.
func (b *Activities) readDrill(ctx context.Context, step contract.BackupStep, o *Objects) error {
	if step.Drill == "" {
		return nil
	}
	drill := &holdfastv1alpha1.RestoreDrill{}
	exists, err := k8s.Get(ctx, b.Client, holdfastv1alpha1.KindRestoreDrill, o.NAB.Namespace, step.Drill, drill)
	if err == nil && exists {
		o.NoteDrill(drill)
	}
	return err
}

// applyVerified writes the verdict of the drill that is due. The condition stays when the drill is gone.
func applyVerified(o *Objects) {
	if o.drill == nil {
		return
	}
	record, verified := recordOf(o.drill), verdict.Of(o.drill.Status.Conditions)
	text := verified.Message
	if verified.Status == metav1.ConditionTrue && o.drill.Status.Ready != nil {
		text += fmt.Sprintf("; the workloads were ready %s later", verdict.Took(record.ReadySeconds))
	}
	o.NAB.Status.LastDrill = record
	verdict.Set(&o.NAB.Status.Conditions, o.NAB.Generation, verified.Status, verified.Reason, record.Message(text))
}

// recordVerified writes an Event about the verdict that was written.
func (b *Activities) recordVerified(o *Objects) {
	if o.drill == nil {
		return
	}
	o.drill = nil
	shown := meta.FindStatusCondition(o.NAB.Status.Conditions, holdfastv1alpha1.ConditionVerified)
	b.Record(o.NAB, verdict.EventType(shown), shown.Reason, "Verify", "%s", shown.Message)
}
