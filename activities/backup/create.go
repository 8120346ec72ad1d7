package backup

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"holdfast.dev/holdfast/activities"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/policy/backupspec"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// Start creates the Velero Backup of a new object, with a single read.
func (b *Activities) Start(ctx context.Context, o *Objects, step contract.BackupStep) error {
	return b.start(ctx, o, step.Turn)
}

// start validates the spec, adds our finalizer to the object, creates the Velero Backup and writes the status once. Where a quota
// applies it counts before the finalizer, and again after it. If the process is killed in between, the next attempt finds the
// Velero Backup by its name. Without a turn that is usable the object waits if the policy gives turns.
func (b *Activities) start(ctx context.Context, o *Objects, turn contract.UsableTurn) error {
	if o.DeletionRequested() {
		return nil
	}
	before := o.View(b.now())
	verdict, err := b.judge(ctx, o)
	if err != nil {
		return err
	}
	if !verdict.Accepted || o.Backup != nil {
		return b.conclude(ctx, o, verdict)
	}
	if _, err := b.PatchObject(ctx, o.NAB, addFinalizer(o.NAB)); err != nil {
		return err
	}
	if placed, err := b.confirm(ctx, o); err != nil || !placed {
		return err
	}
	if o.Rules.Queue.MaxActive > 0 && !activities.TurnUsable(ctx, turn) {
		return b.await(ctx, o, verdict)
	}
	if err := b.createVeleroBackup(ctx, o); err != nil {
		refusal, permanent := rejection(o.NAB, err)
		switch {
		case permanent:
			return b.conclude(ctx, o, refusal)
		case apierrors.IsConflict(err):
			return err
		}
		return errors.Join(err, b.applyVerdict(ctx, o, verdict)) // so that the tenant sees at least the verdict while the cause lasts
	}
	o.turnUsed = turn.Number > 0
	b.recordTurn(o)
	changed, err := b.patchStatus(ctx, o.NAB, func() {
		lifecycle.ApplyVerdict(o.NAB, verdict, o.BackupName, b.Gatherer.OADPNamespace)
		b.applyCreated(o)
	})
	if changed {
		if before.Phase == string(oadpv1alpha1.NonAdminPhaseBackingOff) {
			b.recorder().Verdict(o.NAB, o.NAB.Status.Phase, verdict)
		}
		b.recorder().Created(o.NAB, o.BackupName, before.Phase, before.AwaitsTurn || o.turnUsed)
	}
	return err
}

// await writes that an accepted object waits for its turn.
func (b *Activities) await(ctx context.Context, o *Objects, verdict check.Verdict) error {
	changed, err := b.patchStatus(ctx, o.NAB, func() {
		lifecycle.ApplyVerdict(o.NAB, verdict, o.BackupName, b.Gatherer.OADPNamespace)
		lifecycle.ApplyWaiting(o.NAB)
	})
	if changed {
		b.recorder().Verdict(o.NAB, o.NAB.Status.Phase, verdict)
	}
	return err
}

// Admit validates the spec as of now and writes the verdict: the Accepted condition, the phase and, for an accepted spec
// that is not backed up yet, the reference to the Velero Backup and our finalizer, both before that Backup exists.
func (b *Activities) Admit(ctx context.Context, o *Objects, _ contract.BackupStep) error {
	if o.DeletionRequested() {
		return nil // a deletion has precedence, and must not wait for a policy or a storage location
	}
	verdict, err := b.judge(ctx, o)
	if err != nil {
		return err
	}
	return b.conclude(ctx, o, verdict)
}

func (b *Activities) judge(ctx context.Context, o *Objects) (check.Verdict, error) {
	verdict, err := b.Gatherer.Judge(ctx, o)
	if err != nil {
		// Seen, not yet judged: the tenant is to see at least that while the cause lasts.
		_, patchErr := b.patchStatus(ctx, o.NAB, func() { lifecycle.ApplySeen(o.NAB) })
		return check.Verdict{}, errors.Join(err, patchErr)
	}
	return verdict, nil
}

// conclude writes the verdict, and adds our finalizer if there is something to protect. What is refused takes no place.
func (b *Activities) conclude(ctx context.Context, o *Objects, verdict check.Verdict) error {
	counted := o.Rules != nil && (len(o.Rules.Quotas) > 0 || o.Rules.Queue.MaxActive > 0)
	if counted && !verdict.Accepted && o.Backup == nil && !lifecycle.EverCreated(o.NAB) {
		if err := b.yield(ctx, o); err != nil {
			return err
		}
	}
	if err := b.applyVerdict(ctx, o, verdict); err != nil {
		return err
	}
	if !verdict.Accepted && o.Backup == nil {
		return nil
	}
	_, err := b.PatchObject(ctx, o.NAB, addFinalizer(o.NAB))
	return err
}

func addFinalizer(nab *oadpv1alpha1.NonAdminBackup) func() {
	return func() { controllerutil.AddFinalizer(nab, oadpv1alpha1.NabFinalizer) }
}

func (b *Activities) applyVerdict(ctx context.Context, o *Objects, verdict check.Verdict) error {
	changed, err := b.patchStatus(ctx, o.NAB, func() {
		if o.Backup != nil { // synced from the object store, or made by an attempt that was killed before it recorded it
			b.applyCreated(o)
		}
		lifecycle.ApplyVerdict(o.NAB, verdict, o.BackupName, b.Gatherer.OADPNamespace)
	})
	if err != nil {
		return err
	}
	o.Verdict = &verdict
	if changed {
		b.recorder().Verdict(o.NAB, o.NAB.Status.Phase, verdict)
	}
	return nil
}

func (b *Activities) applyCreated(o *Objects) {
	lifecycle.ApplyCreated(o.NAB)
	ApplyMirror(o.NAB, o, b.Gatherer.OADPNamespace)
}

// rejection turns an error that no retry can cure into the verdict that the tenant reads.
func rejection(nab *oadpv1alpha1.NonAdminBackup, err error) (verdict check.Verdict, permanent bool) {
	var invalid *check.InvalidSpecError
	switch {
	case errors.As(err, &invalid): // by a change since the spec was judged: of the policy, or of the storage location
		return check.Verdict{Reason: oadpv1alpha1.ReasonInvalidBackupSpec, Message: invalid.Error()}, true
	case activities.Refused(err):
		return lifecycle.Refusal(nab, err), true
	}
	return check.Verdict{}, false
}

func (b *Activities) createVeleroBackup(ctx context.Context, o *Objects) error {
	created := velero.NewBackup(o.NAB, o.BackupName, b.Gatherer.OADPNamespace,
		backupspec.Build(o.NAB, *o.Rules, o.StorageLocation))
	if o.Rules.Drills.Enabled {
		metav1.SetMetaDataAnnotation(&created.ObjectMeta, holdfastv1alpha1.AnnotationDigests, holdfastv1alpha1.DigestsDue)
	}
	if err := activities.AsConflict(b.Client.Create(ctx, created)); err != nil {
		return fmt.Errorf("create Velero Backup %s/%s: %w", created.Namespace, created.Name, err)
	}
	o.Backup = created
	return nil
}
