package drill

import (
	"context"
	"fmt"
	"maps"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
	"holdfast.dev/holdfast/workflows/contract"
)

// Start has Velero restore the backup, unless that cannot be restored any more. The time of the drill begins.
func (a *Activities) Start(ctx context.Context, o *objects, step contract.DrillStep) error {
	status := func() *holdfastv1alpha1.RestoreDrillStatus { return &o.Drill.Status }
	if !o.stays() || status().Backup == "" || status().Started != nil || status().Concluded != nil || o.Occupied != "" {
		return activities.ErrUnchanged
	}
	if o.Restore == nil {
		why, err := a.createRestore(ctx, o, step.Turn)
		switch {
		case err != nil && o.View().Late && ctx.Err() == nil:
			return a.patch(ctx, o, func() {
				o.refuse(fmt.Sprintf("the restore could not be started within %s: %v", o.Drill.Spec.Timeout, err))
			})
		case err != nil:
			return err
		case why != "":
			return a.patch(ctx, o, func() { o.refuse(why) })
		case o.Restore == nil:
			return nil // without a namespace, which the workflow has made, or without its turn
		}
		if o.turnUsed = step.Turn.Number > 0; o.turnUsed {
			metrics.TurnUsed(activities.TurnLane(contract.PoolRestores, contract.LaneDrill), o.Drill.CreationTimestamp.Time)
		}
	}
	return a.patch(ctx, o, func() {
		status().Started, status().Phase = o.now(), holdfastv1alpha1.DrillRestoring
		meta.RemoveStatusCondition(&status().Conditions, holdfastv1alpha1.ConditionQueued)
	})
}

// createRestore creates the Velero Restore, or says why it cannot. While the policy gives turns and this is none, it writes that
// the drill waits.
func (a *Activities) createRestore(ctx context.Context, o *objects, turn contract.UsableTurn) (why string, err error) {
	if o.Namespace == nil || !o.Namespace.DeletionTimestamp.IsZero() {
		return "", nil
	}
	rules, err := a.rules(ctx)
	if err != nil {
		return "", err
	}
	from, why, err := a.restoring(ctx, o.Drill, o.Drill.Status.Backup, rules)
	if err != nil || why != "" {
		return why, err
	}
	if from.source.NAB.UID != o.Drill.Status.BackupUID {
		return "the backup was deleted, and another one has its name: create another drill", nil
	}
	if len(o.Drill.Status.Checks) != len(checksOf(&o.Drill.Spec.Checks, rules.Drills)) {
		return "the administrator's policy has changed (drills.withoutNetworkPolicies): create another drill", nil
	}
	if rules.Queue.MaxActiveRestores > 0 && !activities.TurnUsable(ctx, turn) {
		return "", a.patch(ctx, o, o.await)
	}
	if err := a.Buckets.Admit(ctx, from.source.Backup); err != nil {
		return "", err
	}
	if err := a.createModifier(ctx, o, from.drill); err != nil {
		return "", err
	}
	made := &velerov1.Restore{
		ObjectMeta: owner.DrillMeta(a.Gatherer.ClusterID, o.Drill, a.Gatherer.OADPNamespace),
		Spec:       from.drill.Spec(from.source.Backup.Name, o.Name),
	}
	// Velero restores nothing else while it waits for a Pod whose volumes it restores.
	made.Annotations[velerov1.PodVolumeOperationTimeoutAnnotation] = o.Drill.Spec.Timeout
	switch err := a.Client.Create(ctx, made); {
	case apierrors.IsAlreadyExists(err):
		// An earlier attempt of ours has made it, or somebody else: the next read shows which.
		return "", apierrors.NewConflict(velerov1.Resource("restores"), made.Name, err)
	case activities.Refused(err):
		return fmt.Sprintf("the Velero Restore could not be created: %v", err), nil
	case err != nil:
		return "", fmt.Errorf("create Velero Restore %s: %w", made.Name, err)
	}
	o.Restore = made
	return "", nil
}

// await writes that the drill waits for its turn.
func (o *objects) await() {
	o.Drill.Status.Phase = holdfastv1alpha1.DrillWaiting
	meta.SetStatusCondition(&o.Drill.Status.Conditions, metav1.Condition{
		Type: holdfastv1alpha1.ConditionQueued, Status: metav1.ConditionFalse, ObservedGeneration: o.Drill.Generation,
		Reason: holdfastv1alpha1.ReasonWaitingForTurn, Message: oadpv1alpha1.MessageWaitingForTurn,
	})
}

// createModifier creates the ConfigMap with the resource modifier. One that says something else, of an earlier attempt under
// another policy, is replaced.
func (a *Activities) createModifier(ctx context.Context, o *objects, drill restorespec.Drill) error {
	text, err := drill.Modifier()
	if err != nil {
		return err
	}
	wanted := &corev1.ConfigMap{
		ObjectMeta: owner.DrillMeta(a.Gatherer.ClusterID, o.Drill, a.Gatherer.OADPNamespace),
		Data:       map[string]string{restorespec.ModifierKey: text},
	}
	err = a.Client.Create(ctx, wanted.DeepCopy())
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ConfigMap %s: %w", wanted.Name, err)
	}
	found := &corev1.ConfigMap{}
	if err := a.Client.Get(ctx, client.ObjectKeyFromObject(wanted), found); err != nil {
		return fmt.Errorf("get ConfigMap %s: %w", wanted.Name, err)
	}
	if !a.made(found, o) {
		return fmt.Errorf("ConfigMap %s exists and was not made for drill %s: it is left alone", wanted.Name, o.Ref)
	}
	if found.DeletionTimestamp.IsZero() && len(found.BinaryData) == 0 && maps.Equal(found.Data, wanted.Data) {
		return nil
	}
	if err := a.Delete(ctx, found); err != nil {
		return err
	}
	return apierrors.NewConflict(corev1.Resource("configmaps"), wanted.Name, err)
}

// made reports whether an object was made for the drill.
func (a *Activities) made(object client.Object, o *objects) bool {
	_, uid, ours := owner.DrillOf(a.Gatherer.ClusterID, object)
	return ours && string(uid) == o.Ref.UID
}

// name is the name of all that is made for the drill.
func (a *Activities) name(drill *holdfastv1alpha1.RestoreDrill) string {
	return owner.DrillName(a.Gatherer.ClusterID, drill.UID)
}
