package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/k8s/velero"
)

// waitingForTurn are the conditions of an object that waits for its turn, and ofPlan the labels of a plan's.
var (
	waitingForTurn = []metav1.Condition{
		{Type: string(oadpv1alpha1.NonAdminConditionAccepted), Status: metav1.ConditionTrue},
		{
			Type: string(oadpv1alpha1.NonAdminConditionQueued), Status: metav1.ConditionFalse,
			Reason: oadpv1alpha1.ReasonWaitingForTurn,
		},
	}
	ofPlan = map[string]string{holdfastv1alpha1.LabelPlan: "nightly"}
)

func TestTheCensusCountsWhatTheCachesHold(t *testing.T) {
	at := func(hour int) *metav1.Time { return &metav1.Time{Time: time.Date(2026, 8, 1, hour, 0, 0, 0, time.UTC)} }
	veleroBackup := func(namespace, name string, phase velerov1.BackupPhase, started *metav1.Time) client.Object {
		return &velerov1.Backup{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Status:     velerov1.BackupStatus{Phase: phase, StartTimestamp: started},
		}
	}
	location := func(namespace, name string, validated *metav1.Time) client.Object {
		return &velerov1.BackupStorageLocation{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Status:     velerov1.BackupStorageLocationStatus{LastValidationTime: validated},
		}
	}
	stalled, _ := tracked("stalled", "InProgress")
	stalled.Status.Conditions = append(stalled.Status.Conditions, metav1.Condition{
		Type: string(oadpv1alpha1.NonAdminConditionVeleroStalled), Status: metav1.ConditionTrue,
	})
	recovered, _ := tracked("recovered", "Completed")
	recovered.Status.Conditions = append(recovered.Status.Conditions, metav1.Condition{
		Type: string(oadpv1alpha1.NonAdminConditionVeleroStalled), Status: metav1.ConditionFalse,
	})
	forged := fake.NAB("forged")
	forged.Status.Phase = "tenant-team"
	waits := func(name string, since int, labels map[string]string) *oadpv1alpha1.NonAdminBackup {
		nab := fake.NAB(name)
		nab.Labels, nab.CreationTimestamp, nab.Status.Phase = labels, *at(since), oadpv1alpha1.NonAdminPhaseBackingOff
		nab.Status.Conditions = waitingForTurn
		return nab
	}
	going := waits("going", 1, nil)
	going.Spec.DeleteBackup = true
	s := newStation(t, waits("later", 4, ofPlan), waits("earlier", 3, ofPlan), waits("by-hand", 5, nil), going, stalled, recovered, fake.NAB("new"), keptBack("greedy"), forged,
		veleroBackup(fake.OADPNamespace, "a", "Completed", at(9)),
		veleroBackup(fake.OADPNamespace, "b", "InProgress", at(11)),
		veleroBackup(fake.OADPNamespace, "c", "Completed", at(10)),
		veleroBackup(fake.OADPNamespace, "d", "", nil),
		veleroBackup(fake.OADPNamespace, "e", "Queued", nil),
		veleroBackup("another-velero", "f", "InProgress", at(23)),
		location(fake.OADPNamespace, "never", nil), location(fake.OADPNamespace, "seldom", at(7)),
		location(fake.OADPNamespace, "often", at(12)), location("another-velero", "elsewhere", at(23)))
	asked := func(name, reason string, since int, pending *velerov1.BackupStorageLocationSpec) client.Object {
		return &oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: name},
			Status: oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestStatus{
				VeleroBackupStorageLocationApprovalRequest: &oadpv1alpha1.VeleroBackupStorageLocationApprovalRequest{PendingSpec: pending},
				Conditions: []metav1.Condition{{
					Type: string(oadpv1alpha1.NonAdminConditionClusterAdminApproved), Reason: reason, LastTransitionTime: *at(since),
				}},
			},
		}
	}
	for _, object := range []client.Object{
		asked("long", oadpv1alpha1.ReasonBSLSpecApprovalPending, 5, &velerov1.BackupStorageLocationSpec{}),
		asked("new", oadpv1alpha1.ReasonBSLSpecApprovalPending, 6, &velerov1.BackupStorageLocationSpec{}),
		asked("revoked", oadpv1alpha1.ReasonBSLSpecApprovalPending, 2, nil),
		asked("decided", oadpv1alpha1.ReasonBSLSpecApproved, 1, nil),
		&oadpv1alpha1.NonAdminBackupStorageLocation{
			ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: "own"},
			Status:     oadpv1alpha1.NonAdminBackupStorageLocationStatus{Phase: oadpv1alpha1.NonAdminPhaseBackingOff},
		},
		&oadpv1alpha1.NonAdminRestore{
			ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: "lost"},
			Status:     oadpv1alpha1.NonAdminRestoreStatus{Phase: "Created", Conditions: stalled.Status.Conditions},
		},
		&oadpv1alpha1.NonAdminRestore{ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: "fresh"}},
		&oadpv1alpha1.NonAdminRestore{
			ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: "waits", CreationTimestamp: *at(8)},
			Status:     oadpv1alpha1.NonAdminRestoreStatus{Phase: oadpv1alpha1.NonAdminPhaseNew, Conditions: waitingForTurn},
		},
		&velerov1.Restore{
			ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: "undo"},
			Status:     velerov1.RestoreStatus{Phase: velerov1.RestorePhaseInProgress},
		},
		&velerov1.Restore{ObjectMeta: metav1.ObjectMeta{Namespace: "another-velero", Name: "elsewhere"}},
	} {
		require.NoError(t, s.cache.Client.Create(t.Context(), object))
	}
	assert.Nil(t, s.Census(), "the caches are not filled yet: a scrape must not wait for them")
	s.watching.Store(true)
	taken := s.Census()
	require.NotNil(t, taken)
	taken.FoundationDB, taken.Plans = metrics.FDBCensus{}, metrics.PlanCensus{} // have tests of their own
	assert.Equal(t, 10, taken.Unfinished.Number)
	assert.Equal(t, "NonAdminBackup team/forged", taken.Unfinished.Kind+" "+taken.Unfinished.Namespace+"/"+taken.Unfinished.Name)
	taken.Unfinished = metrics.Unfinished{}
	assert.Equal(t, &metrics.Census{
		VeleroBackups:  map[velero.State]int{velero.StateFinished: 2, velero.StateInProgress: 1, velero.StateWaiting: 2},
		LastStart:      at(11).Local(),
		LastValidation: at(12).Local(),
		Phases: map[*metrics.Phases]map[string]int{
			metrics.NonAdminBackups:  {"new": 1, "backing_off": 5, "created": 2, "deleting": 0, "unknown": 1},
			metrics.NonAdminRestores: {"new": 2, "backing_off": 0, "created": 1, "deleting": 0, "unknown": 0},
			metrics.StorageLocations: {"new": 0, "backing_off": 1, "created": 0, "deleting": 0, "unknown": 0},
		},
		Stalled:         1,
		StalledRestores: 1,
		VeleroRestores:  map[velero.State]int{velero.StateInProgress: 1},
		Turns: map[metrics.TurnLane]metrics.TurnsWaiting{
			{Pool: "backups", Name: "by-hand"}:      {Number: 1, Oldest: at(5).Local()},
			{Pool: "backups", Name: "plan"}:         {Number: 2, Oldest: at(3).Local()},
			{Pool: "backups", Name: "default-plan"}: {},
			{Pool: "restores", Name: "drill"}:       {},
			{Pool: "restores", Name: "by-hand"}:     {Number: 1, Oldest: at(8).Local()},
		},
		PendingApprovals: 2,
		OldestPending:    at(5).Local(),
	}, taken)

	s.cache.FailReads(func(runtime.Object) error { return errAway })
	assert.Nil(t, s.Census())
}
