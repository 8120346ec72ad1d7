package e2e_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/test/env"
)

// Velero may take up a Backup twice (see env.TakenUpTwice), which then fails for no fault of Holdfast's. A test that waits for the
// end of a backup that Velero itself makes waits by awaitVeleroPhase, which has another one made, or inside repeated.

// errTakenUpTwice ends a test of one tenant: see repeated.
var errTakenUpTwice = errors.New("a Backup was taken up twice by Velero")

// repeated runs what a test does with a new tenant, and once more with another if Velero takes up a Backup of that tenant's
// twice. It is told by the waits: awaitPlan, awaitCompletedByVelero and those of the command line.
func repeated(t *testing.T, user string, run func(x *tenant)) {
	t.Helper()
	for range 3 {
		x := newTenant(t, user)
		x.repeatable = true
		if completes(func() { run(x) }) {
			x.repeatable = false
			return
		}
		t.Logf("%v: another tenant instead of %s", errTakenUpTwice, x.namespace)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.namespace}} // with its plans, which would go on
		require.NoError(t, admin.Delete(t.Context(), namespace))
	}
	require.NoError(t, errTakenUpTwice, "with three tenants")
}

func completes(run func()) (completed bool) {
	defer func() {
		switch reason := recover(); reason {
		case nil, errTakenUpTwice:
		default:
			panic(reason)
		}
	}()
	run()
	return true
}

// checkTakenUpOnce gives the test up for another tenant's turn if Velero has taken up a Backup of this tenant's twice.
func (x *tenant) checkTakenUpOnce() {
	if !x.repeatable {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	twice, err := env.BackupsTakenUpTwice(ctx, admin, x.namespace)
	if err == nil && len(twice) > 0 {
		panic(errTakenUpTwice)
	}
}

// backupID is the name of the Velero Backup that is made for an object.
func backupID(nab *oadpv1alpha1.NonAdminBackup) string {
	return owner.NACUUID(stack.ClusterID(), nab.Namespace, nab.Name, string(nab.UID))
}

// awaitCompletedByVelero waits until Velero itself calls a backup Completed, inside repeated.
func (x *tenant) awaitCompletedByVelero(nab *oadpv1alpha1.NonAdminBackup) {
	x.t.Helper()
	awaitObject(x.t, admin, &velerov1.Backup{ObjectMeta: inOADP(backupID(nab))}, patience, "Completed",
		func(now *velerov1.Backup, there bool) bool {
			x.checkTakenUpOnce()
			return there && now.Status.Phase == velerov1.BackupPhaseCompleted
		})
}

// credentialsUnread is what Velero's plugin says when it reads the file of a location's credentials while Velero writes it anew, as it
// does for each look at the location: the backup fails.
const credentialsUnread = "failed to get shared config profile"

// mostBackups is how many backups a test makes in place of those that Velero has failed for a reason of its own.
const mostBackups = 3

// awaitVeleroPhase waits until Velero says so. In place of a backup that Velero has taken up twice, which is then not Completed,
// or not for long, or whose credentials it could not read, another is made: nab is that one from then on.
func (x *tenant) awaitVeleroPhase(
	nab *oadpv1alpha1.NonAdminBackup, phase velerov1.BackupPhase,
) *oadpv1alpha1.NonAdminBackup {
	x.t.Helper()
	for range mostBackups {
		spoilt := false
		seen := x.await(nab, "Velero phase "+string(phase), func(now *oadpv1alpha1.NonAdminBackup) bool {
			spoilt = phase == velerov1.BackupPhaseCompleted && (takenUpTwice(now) || credentialsNotRead(now))
			return veleroPhase(now) == phase || spoilt
		})
		if !spoilt {
			return seen
		}
		x.t.Logf("Velero has taken up %s twice, or not read its credentials: another backup instead", seen.Status.VeleroBackup.Name)
		x.awaitRemovedByVelero(seen)
		*nab = oadpv1alpha1.NonAdminBackup{
			ObjectMeta: metav1.ObjectMeta{Namespace: seen.Namespace, Name: seen.Name, Labels: seen.Labels, Annotations: seen.Annotations},
			Spec:       oadpv1alpha1.NonAdminBackupSpec{BackupSpec: seen.Spec.BackupSpec},
		}
		require.NoError(x.t, x.client.Create(x.t.Context(), nab))
	}
	require.FailNow(x.t, "Velero has failed each backup for a reason of its own", "the last one: %s/%s", nab.Namespace, nab.Name)
	return nil
}

func credentialsNotRead(nab *oadpv1alpha1.NonAdminBackup) bool {
	made := nab.Status.VeleroBackup
	return made != nil && made.Status != nil && strings.Contains(made.Status.FailureReason, credentialsUnread)
}

// takenUpTwice looks at Velero's own Backup, too: the object may show its first end when Velero is at it again.
func takenUpTwice(nab *oadpv1alpha1.NonAdminBackup) bool {
	if env.TakenUpTwice(nab.Status.VeleroBackup) {
		return true
	}
	if veleroPhase(nab) != velerov1.BackupPhaseCompleted {
		return false
	}
	if stack.HandedOutTwice(nab.Status.VeleroBackup.Name) {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	made := &velerov1.Backup{ObjectMeta: inOADP(nab.Status.VeleroBackup.Name)}
	return admin.Get(ctx, client.ObjectKeyFromObject(made), made) == nil && env.BackupTakenUpTwice(made)
}

// takenUpWithin is how soon Velero has taken up again what its queue has handed out twice, if it does.
const takenUpWithin = 20 * time.Second

// awaitRemovedByVelero deletes a backup with its data: what stayed in the bucket would come back. Velero must be through with it
// first.
func (x *tenant) awaitRemovedByVelero(nab *oadpv1alpha1.NonAdminBackup) {
	x.t.Helper()
	made := &velerov1.Backup{ObjectMeta: inOADP(nab.Status.VeleroBackup.Name)}
	awaitObject(x.t, admin, made, patience, "failed, or Completed for good", func(now *velerov1.Backup, there bool) bool {
		completed := now.Status.Phase == velerov1.BackupPhaseCompleted && now.Status.CompletionTimestamp != nil
		return !there || now.Status.Phase == velerov1.BackupPhaseFailed ||
			(completed && time.Since(now.Status.CompletionTimestamp.Time) > takenUpWithin)
	})
	x.patch(nab, `{"spec":{"deleteBackup":true}}`)
	x.awaitGone(nab)
}
