package velero

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"holdfast.dev/holdfast/activities/download"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/watch/caches"
)

// downloaded returns a NonAdminDownloadRequest that has its URL until ten minutes have passed, and what was made for it.
func downloaded(name string) (*oadpv1alpha1.NonAdminDownloadRequest, *velerov1.DownloadRequest) {
	nadr, made := requested(name)
	made.Status = velerov1.DownloadRequestStatus{
		Phase: velerov1.DownloadRequestPhaseProcessed, DownloadURL: "https://store",
		Expiration: &metav1.Time{Time: fake.DownloadTime.Add(10 * time.Minute)},
	}
	download.ApplyAnswer(nadr, &download.Objects{NADR: nadr, Request: made})
	return nadr, made
}

// requested returns one that waits for Velero.
func requested(of string) (*oadpv1alpha1.NonAdminDownloadRequest, *velerov1.DownloadRequest) {
	nadr := fake.NADR(of, velerov1.DownloadTargetKindBackupLog, name)
	download.ApplyVerdict(nadr, download.Verdict{Available: true})
	target := velerov1.DownloadTarget{Kind: velerov1.DownloadTargetKindBackupLog, Name: fake.VeleroName(name)}
	return nadr, download.NewRequest(nadr, fake.OADPNamespace, target)
}

// refusedDownload returns one whose file cannot be had, as long as there is no backup.
func refusedDownload(of string, kind velerov1.DownloadTargetKind, subject string) *oadpv1alpha1.NonAdminDownloadRequest {
	nadr := fake.NADR(of, kind, subject)
	download.ApplyVerdict(nadr, download.Verdict{
		Condition: oadpv1alpha1.NonAdminConditionNonAdminBackupNotAvailable,
		Message:   `cannot get nonadminbackup: there is no NonAdminBackup "` + subject + `" in this namespace`,
	})
	return nadr
}

func TestALookAtADownloadSignalsWhatIsNotSettled(t *testing.T) {
	const start, gone = "start nadr team/logs uid-logs", "deleted nadr team/logs uid-logs"
	done, madeDone := downloaded("logs")
	open, madeOpen := requested("logs")
	refused := refusedDownload("logs", velerov1.DownloadTargetKindBackupLog, name)
	later := func(after time.Duration) reconcile.Result { return reconcile.Result{RequeueAfter: after} }
	tests := map[string]struct {
		there  []client.Object
		after  time.Duration
		force  bool
		want   []string
		result reconcile.Result
	}{
		"a new one":                           {there: []client.Object{fake.NADR("logs", "BackupLog", name)}, want: []string{start}, result: later(5 * time.Minute)},
		"one that waits":                      {there: []client.Object{open, madeOpen}, want: []string{start}, result: later(5 * time.Minute)},
		"one that is done":                    {there: []client.Object{done, madeDone}, result: later(5 * time.Minute)},
		"one that is done, and soon over":     {there: []client.Object{done, madeDone}, after: 7 * time.Minute, result: later(3 * time.Minute)},
		"one that is over":                    {there: []client.Object{done, madeDone}, after: 10 * time.Minute, want: []string{start}, result: later(5 * time.Minute)},
		"one that is refused":                 {there: []client.Object{refused}, result: later(5 * time.Minute)},
		"one whose file has come":             {there: append(fake.Taken(name, fake.StoreLocation, fake.Namespace), refused), want: []string{start}, result: later(5 * time.Minute)},
		"one that is gone":                    {want: []string{gone}},
		"one that is gone and has left a URL": {there: []client.Object{madeDone}, want: []string{start}, result: later(5 * time.Minute)},
		"one that is judged by its workflow":  {there: []client.Object{done, madeDone}, force: true, want: []string{start}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := newStation(t, test.there...)
			s.now = fake.DownloadTime.Add(test.after)
			asked := request("logs")
			asked.Force = test.force
			result, err := s.downloads.Reconcile(t.Context(), asked)
			require.NoError(t, err)
			assert.Equal(t, test.want, s.signals.Sent)
			assert.Equal(t, test.result, result)
		})
	}
}

func TestALookAtADownloadThatFailsIsRepeated(t *testing.T) {
	s := newStation(t, fake.NADR("logs", "BackupLog", name))
	s.signals.Err = errAway
	_, err := s.downloads.Reconcile(t.Context(), request("logs"))
	require.ErrorIs(t, err, errAway)
	s.signals.Err, s.paused = nil, errAway
	result, err := s.downloads.Reconcile(t.Context(), request("logs"))
	require.NoError(t, err)
	assert.Equal(t, 10*time.Second, result.RequeueAfter)
	assert.Empty(t, s.signals.Sent)
}

// Every event that may change what a download request needs has it looked at; its own status alone does not.
func TestWhichEventsConcernADownload(t *testing.T) {
	type requestOf = *oadpv1alpha1.NonAdminDownloadRequest
	done, madeDone := downloaded("done")
	open, madeOpen := requested("open")
	_, orphan := requested("orphan")
	backupLog := refusedDownload("of-backup", velerov1.DownloadTargetKindBackupLog, name)
	restoreLog := refusedDownload("of-restore", velerov1.DownloadTargetKindRestoreLog, name)
	taken := fake.Taken(name, fake.StoreLocation, fake.Namespace)
	nab, made, location := taken[0].(*oadpv1alpha1.NonAdminBackup), taken[1].(*velerov1.Backup), taken[2].(*velerov1.BackupStorageLocation)
	restore := fake.RestoredFrom(name, name)
	nar, madeRestore := restore[0].(*oadpv1alpha1.NonAdminRestore), restore[1].(*velerov1.Restore)
	update := func(before, after client.Object) func(events, *recordingQueue) {
		return func(e events, q *recordingQueue) {
			e.Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
		}
	}
	create := func(object client.Object) func(events, *recordingQueue) {
		return func(e events, q *recordingQueue) { e.Create(t.Context(), event.CreateEvent{Object: object}, q) }
	}
	gone := func(object client.Object) func(events, *recordingQueue) {
		return func(e events, q *recordingQueue) { e.Delete(t.Context(), event.DeleteEvent{Object: object}, q) }
	}
	of := func(subject *caches.Kind) func(*downloads) events {
		return func(d *downloads) events {
			for _, source := range d.Sources {
				if source.Of == subject {
					return source.Events
				}
			}
			return events{}
		}
	}
	backups, restores, veleroBackups, veleroRestores := of(nonAdminBackups), of(nonAdminRestores), of(veleroBackups), of(veleroRestores)
	stall := madeDone.DeepCopy()
	stall.Name, stall.Annotations = "b-backupcontents", made.Annotations
	tests := map[string]struct {
		of   func(*downloads) events
		do   func(events, *recordingQueue)
		want []added
	}{
		"it is made":                    {(*downloads).downloadEvents, create(open), atOnce(request("open"))},
		"it is gone":                    {(*downloads).downloadEvents, gone(open), atOnce(request("open"))},
		"its status changes":            {(*downloads).downloadEvents, update(open, edited(open, func(n requestOf) { n.Status.Conditions = nil })), nil},
		"its target changes":            {(*downloads).downloadEvents, update(open, edited(open, func(n requestOf) { n.Generation++ })), atOnce(request("open"))},
		"it was refused":                {(*downloads).downloadEvents, update(fake.NADR("of-backup", "BackupLog", name), backupLog), atOnce(request("of-backup"))},
		"asked for by Holdfast":         {(*downloads).veleroEvents, create(madeOpen), nil},
		"answered while nobody looked":  {(*downloads).veleroEvents, create(madeDone), atOnce(request("done"))},
		"left behind":                   {(*downloads).veleroEvents, create(orphan), atOnce(request("orphan"))},
		"answered":                      {(*downloads).veleroEvents, update(madeOpen, edited(madeOpen, func(r *velerov1.DownloadRequest) { r.Status.Phase = "Processed" })), atOnce(request("open"))},
		"not answered yet":              {(*downloads).veleroEvents, update(madeOpen, edited(madeOpen, func(r *velerov1.DownloadRequest) { r.Status.Expiration = &metav1.Time{} })), nil},
		"Velero has deleted it":         {(*downloads).veleroEvents, gone(madeDone), atOnce(request("done"))},
		"a request for something else":  {(*downloads).veleroEvents, gone(stall), nil},
		"its backup is made":            {backups, create(nab), atOnce(request("of-backup"))},
		"its backup in another phase":   {backups, update(nab, edited(nab, func(n *oadpv1alpha1.NonAdminBackup) { n.Status.Phase = "New" })), atOnce(request("of-backup"))},
		"its backup's other status":     {backups, update(nab, edited(nab, func(n *oadpv1alpha1.NonAdminBackup) { n.Status.QueueInfo = nil })), nil},
		"another backup":                {backups, create(fake.NAB("weekly")), nil},
		"its restore is made":           {restores, create(nar), atOnce(request("of-restore"))},
		"its restore in another phase":  {restores, update(nar, edited(nar, func(n *oadpv1alpha1.NonAdminRestore) { n.Status.Phase = "New" })), atOnce(request("of-restore"))},
		"its restore is gone":           {restores, gone(nar), atOnce(request("of-restore"))},
		"its Velero Backup's phase":     {veleroBackups, update(made, edited(made, func(b *velerov1.Backup) { b.Status.Phase = "Finalizing" })), atOnce(request("of-backup"))},
		"its Velero Backup's progress":  {veleroBackups, update(made, edited(made, func(b *velerov1.Backup) { b.Status.Warnings++ })), nil},
		"its Velero Restore's phase":    {veleroRestores, update(madeRestore, edited(madeRestore, func(r *velerov1.Restore) { r.Status.Phase = "Failed" })), atOnce(request("of-restore"))},
		"its Velero Restore is gone":    {veleroRestores, gone(madeRestore), atOnce(request("of-restore"))},
		"an administrator's own backup": {veleroBackups, create(&velerov1.Backup{}), nil},
		"its location is back":          {(*downloads).locationEvents, create(location), atOnce(request("of-backup"), request("of-restore"))},
		"another tenant's location":     {(*downloads).locationEvents, create(fake.VeleroLocation("crew-store", "crew")), nil},
		"an administrator's location":   {(*downloads).locationEvents, gone(fake.VeleroLocation(fake.AdminLocation, "")), nil},
		"it is replaced, while one slept": {(*downloads).downloadEvents, update(open, edited(open, func(n requestOf) { n.UID = "other" })), atOnce(
			request("open"), Request{Namespace: fake.Namespace, Name: "open", UID: "other"})},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s, q := newStation(t, done, madeDone, open, madeOpen, backupLog, restoreLog), &recordingQueue{}
			test.do(test.of(s.downloads), q)
			assert.ElementsMatch(t, test.want, q.Added)
		})
	}
}

func TestADownloadIsLookedAtWhenItsTimeIsOver(t *testing.T) {
	open, _ := requested("logs")
	open.CreationTimestamp = metav1.Now()
	soon := edited(open, func(n *oadpv1alpha1.NonAdminDownloadRequest) {
		download.ApplyAnswer(n, &download.Objects{NADR: n, Request: &velerov1.DownloadRequest{Status: velerov1.DownloadRequestStatus{
			DownloadURL: "https://store", Expiration: &metav1.Time{Time: time.Now().Add(10 * time.Minute)},
		}}})
	})
	s, q := newStation(t), &recordingQueue{}
	s.downloads.downloadEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: open, ObjectNew: soon}, q)
	require.Len(t, q.Added, 1)
	assert.Equal(t, request("logs"), q.Added[0].Request)
	assert.InDelta(t, 10*time.Minute, q.Added[0].After, float64(time.Minute))
}

// A Temporal that has lost its database must judge what deleted requests have left, too.
func TestAfterTheReturnOfTemporalDownloadsAndWhatTheyLeftAreJudged(t *testing.T) {
	waiting, madeWaiting := requested("waiting")
	done, madeDone := downloaded("done")
	s := newStation(t, waiting, madeWaiting, done, madeDone)
	s.downloads.RequeueAll(t.Context())
	assert.Len(t, s.downloads.Requested(), 4, "both that are there, and those of both that Velero has")
}
