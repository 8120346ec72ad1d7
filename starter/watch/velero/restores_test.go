package velero

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/starter/watch/watchtest"
)

const startRestore = "start nar team/again uid-again"

// restored returns a NonAdminRestore that is created, and the Velero Restore that was made for it.
func restored(name string, phase velerov1.RestorePhase) (*oadpv1alpha1.NonAdminRestore, *velerov1.Restore) {
	return watchtest.Restored(fake.NAR(name, "nightly"), fake.VeleroName(name), fake.OADPNamespace, phase)
}

// refusedRestore returns a NonAdminRestore in BackingOff, since its backup is not there.
func refusedRestore(name string) *oadpv1alpha1.NonAdminRestore {
	nar := fake.NAR(name, "nightly")
	lifecycle.ApplyVerdict(nar, check.Verdict{
		Reason:  "InvalidRestoreSpec",
		Message: `NonAdminRestore spec.restoreSpec.backupName is invalid: nonadminbackups.oadp.openshift.io "nightly" not found`,
	}, "", "")
	return nar
}

func TestALookAtARestoreSignalsOnlyWhatIsNotSettled(t *testing.T) {
	const name = "again"
	later := reconcile.Result{RequeueAfter: 5 * time.Minute}
	force := request(name)
	force.Force = true
	failed, failedRestore := restored(name, "Failed")
	running, runningRestore := restored(name, "InProgress")
	completed, completedRestore := restored(name, "Completed")
	wrappedUp, wrappedUpRestore := restored(name, "Completed")
	wrappedUp.Status.Finalization = &oadpv1alpha1.RestoreFinalization{Phase: oadpv1alpha1.FinalizationPhaseCompleted}
	lost, _ := restored(name, "InProgress")
	ready := append(fake.Taken("nightly", fake.AdminLocation, ""), refusedRestore(name))
	tests := map[string]struct {
		there   []client.Object
		request Request
		paused  error
		want    []string
		result  reconcile.Result
	}{
		"new":                              {there: []client.Object{fake.NAR(name, "nightly")}, request: request(name), want: []string{startRestore}, result: later},
		"at work":                          {there: []client.Object{running, runningRestore}, request: request(name), want: []string{startRestore}, result: later},
		"its finalization due":             {there: []client.Object{completed, completedRestore}, request: request(name), want: []string{startRestore}, result: later},
		"its finalization over":            {there: []client.Object{wrappedUp, wrappedUpRestore}, request: request(name), result: later},
		"its Velero Restore lost":          {there: []client.Object{lost}, request: request(name), want: []string{startRestore}, result: later},
		"settled":                          {there: []client.Object{failed, failedRestore}, request: request(name), result: later},
		"kept back, the cause still there": {there: []client.Object{refusedRestore(name)}, request: request(name), result: later},
		"kept back, the cause gone":        {there: ready, request: request(name), want: []string{startRestore}, result: later},
		"gone":                             {request: request(name), want: []string{"deleted nar team/again uid-again"}},
		"not settled by a live look":       {there: []client.Object{failed, failedRestore}, request: force, want: []string{startRestore}},
		"another controller serves it":     {there: []client.Object{fake.NAR(name, "nightly")}, request: request(name), paused: errAway, result: reconcile.Result{RequeueAfter: 10 * time.Second}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := newStation(t, test.there...)
			s.paused = test.paused
			result, err := s.restores.Reconcile(t.Context(), test.request)
			require.NoError(t, err)
			assert.Equal(t, test.want, s.signals.Sent)
			assert.Equal(t, test.result, result)
		})
	}
}

func TestALookAtARestoreThatFailsIsRepeated(t *testing.T) {
	s := newStation(t, fake.NAR("again", "nightly"))
	s.signals.Err = errAway
	s.restores.Volumes.Add(fake.VeleroName("again"))
	_, err := s.restores.Reconcile(t.Context(), request("again"))
	require.ErrorIs(t, err, errAway)
	s.signals.Err = nil
	_, err = s.restores.Reconcile(t.Context(), request("again"))
	require.NoError(t, err)
	assert.True(t, s.signals.Volumes, "what the failed signal said is said again")
}

// Every event that may change what a restore needs has it looked at; its own status alone does not.
func TestWhichEventsConcernARestore(t *testing.T) {
	running, velero := restored("again", "InProgress")
	waiting := refusedRestore("refused")
	taken := fake.Taken("nightly", fake.AdminLocation, "")
	nab, made, location := taken[0].(*oadpv1alpha1.NonAdminBackup), taken[1].(*velerov1.Backup), taken[2].(*velerov1.BackupStorageLocation)
	foreign := fake.VeleroLocation("crew-store", "crew")
	volume := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: fake.OADPNamespace, Name: "v", Labels: map[string]string{velerov1.RestoreNameLabel: velero.Name},
	}}
	terminating := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace}}
	terminating.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	own, refused := request("again"), request("refused")
	update := func(before, after client.Object) func(*station, events, *recordingQueue) {
		return func(_ *station, e events, q *recordingQueue) {
			e.Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
		}
	}
	create := func(object client.Object) func(*station, events, *recordingQueue) {
		return func(_ *station, e events, q *recordingQueue) {
			e.Create(t.Context(), event.CreateEvent{Object: object}, q)
		}
	}
	gone := func(object client.Object) func(*station, events, *recordingQueue) {
		return func(_ *station, e events, q *recordingQueue) {
			e.Delete(t.Context(), event.DeleteEvent{Object: object}, q)
		}
	}
	tests := map[string]struct {
		of   func(*restores) events
		do   func(*station, events, *recordingQueue)
		want []added
	}{
		"it is made":             {(*restores).events, create(running), atOnce(own)},
		"it is gone":             {(*restores).events, gone(running), atOnce(own)},
		"its status changes":     {(*restores).events, update(running, edited(running, func(n *oadpv1alpha1.NonAdminRestore) { n.Status.QueueInfo = nil })), nil},
		"its spec changes":       {(*restores).events, update(running, edited(running, func(n *oadpv1alpha1.NonAdminRestore) { n.Generation++ })), atOnce(own)},
		"it loses our finalizer": {(*restores).events, update(running, edited(running, func(n *oadpv1alpha1.NonAdminRestore) { n.Finalizers = nil })), atOnce(own)},
		"it was rejected":        {(*restores).events, update(fake.NAR("refused", "nightly"), waiting), atOnce(refused)},
		"Velero's phase":         {(*restores).veleroEvents, update(velero, edited(velero, func(v *velerov1.Restore) { v.Status.Phase = "Failed" })), atOnce(own)},
		"Velero's progress": {
			(*restores).veleroEvents, update(velero, edited(velero, func(v *velerov1.Restore) { v.Status.Progress = &velerov1.RestoreProgress{} })),
			[]added{{Request: own, After: 15 * time.Second}},
		},
		"its Velero Restore gone":          {(*restores).veleroEvents, gone(velero), atOnce(own)},
		"its Velero Restore returned":      {(*restores).veleroEvents, create(velero), atOnce(own)},
		"somebody's Velero Restore gone":   {(*restores).veleroEvents, gone(&velerov1.Restore{}), atOnce(refused)},
		"its backup made":                  {(*restores).backupEvents, create(nab), atOnce(refused)},
		"another backup made":              {(*restores).backupEvents, create(fake.NAB("weekly")), nil},
		"its backup in another phase":      {(*restores).backupEvents, update(nab, edited(nab, func(n *oadpv1alpha1.NonAdminBackup) { n.Status.Phase = "New" })), atOnce(refused)},
		"its backup's status":              {(*restores).backupEvents, update(nab, edited(nab, func(n *oadpv1alpha1.NonAdminBackup) { n.Status.QueueInfo = nil })), nil},
		"its Velero Backup's phase":        {(*restores).veleroBackupEvents, update(made, edited(made, func(b *velerov1.Backup) { b.Status.Phase = "Deleting" })), atOnce(refused)},
		"its Velero Backup's progress":     {(*restores).veleroBackupEvents, update(made, edited(made, func(b *velerov1.Backup) { b.Status.Warnings++ })), nil},
		"an administrator's location back": {(*restores).locationEvents, update(location, edited(location, func(l *velerov1.BackupStorageLocation) { l.Status.Phase = "Unavailable" })), atOnce(refused)},
		"a location validated again":       {(*restores).locationEvents, update(location, edited(location, func(l *velerov1.BackupStorageLocation) { l.Status.Message = "x" })), nil},
		"another tenant's location":        {(*restores).locationEvents, create(foreign), nil},
		"its namespace is going":           {(*restores).namespaceEvents, create(terminating), atOnce(own, refused)},
		"its namespace is not":             {(*restores).namespaceEvents, create(&corev1.Namespace{}), nil},
		"a volume of it":                   {(*restores).volumeEvents, create(volume), []added{{Request: own, After: 15 * time.Second}}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s, q := newStation(t, running, velero, waiting), &recordingQueue{}
			test.do(s, test.of(s.restores), q)
			assert.ElementsMatch(t, test.want, q.Added)
		})
	}
}
