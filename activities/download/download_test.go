package download_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/download"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
	downloadworkflow "holdfast.dev/holdfast/workflows/download"
)

const (
	name    = "logs"
	nightly = "nightly"
	again   = "again"
)

// ofNamespace gives what fake.Taken or fake.RestoredFrom returned to another namespace.
func ofNamespace(namespace string, objects []client.Object) []client.Object {
	for _, object := range objects {
		if object.GetNamespace() == fake.Namespace {
			object.SetNamespace(namespace)
		}
		for _, key := range []string{oadpv1alpha1.NabOriginNamespaceAnnotation, oadpv1alpha1.NarOriginNamespaceAnnotation} {
			if annotations := object.GetAnnotations(); annotations[key] == fake.Namespace {
				annotations[key] = namespace
			}
		}
	}
	return objects
}

func gather(t *testing.T, w *fake.World, after time.Duration) *download.Objects {
	t.Helper()
	at := func() time.Time { return fake.DownloadTime.Add(after) }
	objects, err := w.Downloads(at).Gatherer.Gather(t.Context(), fake.Ref(name))
	require.NoError(t, err)
	return objects
}

// stored is a complete backup in the tenant's own location, and a restore of it.
func stored() []client.Object {
	return append(fake.Taken(nightly, fake.StoreLocation, fake.Namespace), fake.RestoredFrom(again, nightly)...)
}

func altered[T client.Object](objects []client.Object, alter func(T)) []client.Object {
	for _, object := range objects {
		if one, is := object.(T); is {
			alter(one)
		}
	}
	return objects
}

func without[T client.Object](objects []client.Object) []client.Object {
	return slices.DeleteFunc(objects, func(object client.Object) bool {
		_, is := object.(T)
		return is
	})
}

func TestEveryKindOfFileIsLookedForAtItsObject(t *testing.T) {
	for kind, of := range map[velerov1.DownloadTargetKind]string{
		"BackupLog": nightly, "BackupContents": nightly, "BackupVolumeSnapshots": nightly, "BackupItemOperations": nightly,
		"BackupResourceList": nightly, "BackupResults": nightly, "CSIBackupVolumeSnapshots": nightly,
		"CSIBackupVolumeSnapshotContents": nightly, "BackupVolumeInfos": nightly,
		"RestoreLog": again, "RestoreResults": again, "RestoreResourceList": again, "RestoreItemOperations": again,
		"RestoreVolumeInfo": again,
	} {
		t.Run(string(kind), func(t *testing.T) {
			o := gather(t, fake.New(t, append(stored(), fake.NADR(name, kind, of))...), 0)
			require.True(t, o.Verdict.Available, o.Verdict.Message)
			assert.Equal(t, velerov1.DownloadTarget{Kind: kind, Name: fake.VeleroName(of)}, o.Verdict.Target)
			isRestore := of == again
			assert.Equal(t, isRestore, download.TargetIs(o.NADR.Spec.Target, "NonAdminRestore", again))
			assert.Equal(t, !isRestore, download.TargetIs(o.NADR.Spec.Target, "NonAdminBackup", nightly))
			assert.False(t, download.TargetIs(o.NADR.Spec.Target, "NonAdminBackup", "other"))
		})
	}
}

func TestAFileThatATenantMayNotHaveIsRefused(t *testing.T) {
	const noBackup, noRestore, notUsed = "NonAdminBackupNotAvailable", "NonAdminRestoreNotAvailable", "NonAdminBackupStorageLocationNotUsed"
	log, restoreLog := velerov1.DownloadTargetKindBackupLog, velerov1.DownloadTargetKindRestoreLog
	phase := func(p velerov1.BackupPhase) []client.Object {
		return altered(stored(), func(b *velerov1.Backup) { b.Status.Phase = p })
	}
	restorePhase := func(p velerov1.RestorePhase) []client.Object {
		return altered(stored(), func(r *velerov1.Restore) { r.Status.Phase = p })
	}
	crews := ofNamespace("crew", stored())
	crewsBackup := fake.VeleroName(nightly)
	adopted := append(fake.RestoredFrom(again, nightly), without[*oadpv1alpha1.NonAdminBackup](ofNamespace("crew", fake.Taken(nightly, fake.StoreLocation, fake.Namespace)))...)
	tests := map[string]struct {
		kind      velerov1.DownloadTargetKind
		of        string
		there     []client.Object
		want, why string
	}{
		"a file nobody knows":                        {"Secrets", nightly, stored(), noBackup, `cannot get nonadminbackup: spec.target.kind "Secrets" is not known`},
		"of no possible name":                        {log, "crew/nightly", stored(), noBackup, `cannot get nonadminbackup: there is no NonAdminBackup "crew/nightly" in this namespace`},
		"of a backup that is not there":              {log, "weekly", stored(), noBackup, `cannot get nonadminbackup: there is no NonAdminBackup "weekly" in this namespace`},
		"of another tenant's backup":                 {log, nightly, crews, noBackup, `cannot get nonadminbackup: there is no NonAdminBackup "nightly" in this namespace`},
		"of a Velero Backup, by its own name":        {log, fake.VeleroName(nightly), stored(), noBackup, `cannot get nonadminbackup: there is no NonAdminBackup "` + fake.VeleroName(nightly) + `" in this namespace`},
		"of a backup not made yet":                   {log, nightly, []client.Object{fake.NAB(nightly)}, noBackup, `cannot get nonadminbackup: NonAdminBackup "nightly" has no Velero Backup`},
		"of a backup that Velero has not seen":       {log, nightly, phase(""), noBackup, `cannot get nonadminbackup: Velero has not written the files of NonAdminBackup "nightly" yet`},
		"of a queued backup":                         {log, nightly, phase("Queued"), noBackup, `cannot get nonadminbackup: Velero has not written the files of NonAdminBackup "nightly" yet`},
		"of a running backup":                        {log, nightly, phase("InProgress"), noBackup, `cannot get nonadminbackup: Velero has not written the files of NonAdminBackup "nightly" yet`},
		"of a backup that Velero refused":            {log, nightly, phase("FailedValidation"), noBackup, `cannot get nonadminbackup: Velero refused NonAdminBackup "nightly", so it has no files`},
		"in the administrator's location":            {log, nightly, fake.Taken(nightly, fake.AdminLocation, ""), notUsed, "backup does not use nonadminbackupstoragelocation, recreate nadr to process"},
		"in another tenant's location":               {log, nightly, fake.Taken(nightly, "crew-store", "crew"), notUsed, "backup does not use nonadminbackupstoragelocation, recreate nadr to process"},
		"in a location that is away":                 {log, nightly, without[*velerov1.BackupStorageLocation](stored()), noBackup, `cannot get nonadminbackup: the storage location of NonAdminBackup "nightly" does not exist`},
		"in no location":                             {log, nightly, altered(stored(), func(b *velerov1.Backup) { b.Spec.StorageLocation = "" }), noBackup, `cannot get nonadminbackup: the storage location of NonAdminBackup "nightly" does not exist`},
		"in a tenant's location, nobody knows whose": {log, nightly, altered(stored(), func(l *velerov1.BackupStorageLocation) { l.Annotations = nil }), notUsed, "backup does not use nonadminbackupstoragelocation, recreate nadr to process"},
		"of a backup, by a forged spec": {log, nightly, altered(fake.Taken(nightly, fake.AdminLocation, ""), func(n *oadpv1alpha1.NonAdminBackup) {
			n.Spec.BackupSpec.StorageLocation = "store"
		}), notUsed, "backup does not use nonadminbackupstoragelocation, recreate nadr to process"},
		"of a backup, by a forged status": {log, nightly, append(without[*oadpv1alpha1.NonAdminBackup](ofNamespace("crew", stored())), altered([]client.Object{fake.NAB(nightly)}, func(n *oadpv1alpha1.NonAdminBackup) {
			n.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{NACUUID: crewsBackup, Name: crewsBackup}
		})...), noBackup, `cannot get nonadminbackup: NonAdminBackup "nightly" has no Velero Backup`},
		"of a backup, by a forged label": {log, "forged", append(ofNamespace("crew", stored()), altered([]client.Object{fake.NAB("forged")}, func(n *oadpv1alpha1.NonAdminBackup) {
			n.Labels = map[string]string{oadpv1alpha1.NabSyncLabel: crewsBackup}
		})...), noBackup, `cannot get nonadminbackup: NonAdminBackup "forged" has no Velero Backup`},
		"of no restore, but a backup":            {restoreLog, nightly, stored(), noRestore, `cannot get nonadminrestore: there is no NonAdminRestore "nightly" in this namespace`},
		"of another tenant's restore":            {restoreLog, again, crews, noRestore, `cannot get nonadminrestore: there is no NonAdminRestore "again" in this namespace`},
		"of a restore not made yet":              {restoreLog, again, []client.Object{fake.NAR(again, nightly)}, noRestore, `cannot get nonadminrestore: NonAdminRestore "again" has no Velero Restore`},
		"of a running restore":                   {restoreLog, again, restorePhase("InProgress"), noRestore, `cannot get nonadminrestore: Velero has not written the files of NonAdminRestore "again" yet`},
		"of a restore that Velero refused":       {restoreLog, again, restorePhase("FailedValidation"), noRestore, `cannot get nonadminrestore: Velero refused NonAdminRestore "again", so it has no files`},
		"of a restore whose backup is gone":      {restoreLog, again, fake.RestoredFrom(again, nightly), noRestore, `cannot get nonadminrestore: the backup that NonAdminRestore "again" was made from is gone`},
		"of a restore of another tenant's":       {restoreLog, again, adopted, noRestore, `cannot get nonadminrestore: the backup that NonAdminRestore "again" was made from is gone`},
		"of a restore, from the admin's backups": {restoreLog, again, append(fake.RestoredFrom(again, nightly), fake.Taken(nightly, fake.AdminLocation, "")...), notUsed, "backup does not use nonadminbackupstoragelocation, recreate nadr to process"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			o := gather(t, fake.New(t, append(test.there, fake.NADR(name, test.kind, test.of))...), 0)
			require.False(t, o.Verdict.Available)
			assert.EqualValues(t, test.want, o.Verdict.Condition)
			assert.Equal(t, test.why, o.Verdict.Message)

			download.ApplyVerdict(o.NADR, *o.Verdict)
			require.Len(t, o.NADR.Status.Conditions, 1)
			only := o.NADR.Status.Conditions[0]
			assert.Equal(t, test.want+" True Error", only.Type+" "+string(only.Status)+" "+only.Reason, "what tools look for")
			assert.Equal(t, oadpv1alpha1.NonAdminPhaseBackingOff, o.NADR.Status.Phase)
			assert.True(t, downloadworkflow.Settled(o.View()))
		})
	}
}

// asked returns a world in which Velero was asked for the log of the backup, with more objects.
func asked(t *testing.T, alter func(*velerov1.DownloadRequest)) *fake.World {
	t.Helper()
	nadr := fake.NADR(name, velerov1.DownloadTargetKindBackupLog, nightly)
	download.ApplyVerdict(nadr, download.Verdict{Available: true})
	target := velerov1.DownloadTarget{Kind: velerov1.DownloadTargetKindBackupLog, Name: fake.VeleroName(nightly)}
	request := download.NewRequest(nadr, fake.OADPNamespace, target)
	if alter != nil {
		alter(request)
	}
	return fake.New(t, append(stored(), nadr, request)...)
}

func signed(request *velerov1.DownloadRequest) {
	request.Status = velerov1.DownloadRequestStatus{
		Phase: velerov1.DownloadRequestPhaseProcessed, DownloadURL: "https://store/log?signature",
		Expiration: &metav1.Time{Time: fake.DownloadTime.Add(10 * time.Minute)},
	}
}

func TestOnlyTheAnswerToWhatIsAskedForIsHandedOn(t *testing.T) {
	tests := map[string]struct {
		alter                            func(*velerov1.DownloadRequest)
		wantAnswerable, wantUseless      bool
		wantForeign, wantExists, current bool
	}{
		"not answered yet": {wantExists: true, current: true},
		"answered":         {alter: signed, wantAnswerable: true, wantExists: true, current: true},
		"answered, but for another file": {alter: func(r *velerov1.DownloadRequest) {
			signed(r)
			r.Spec.Target.Kind = velerov1.DownloadTargetKindBackupContents
		}, wantUseless: true, wantExists: true},
		"answered, but of another backup": {alter: func(r *velerov1.DownloadRequest) {
			signed(r)
			r.Spec.Target.Name = "crew-nightly-1"
		}, wantUseless: true, wantExists: true},
		"answered too long ago": {alter: func(r *velerov1.DownloadRequest) {
			signed(r)
			r.Status.Expiration.Time = fake.DownloadTime
		}, wantUseless: true, wantExists: true},
		"answered without a URL": {alter: func(r *velerov1.DownloadRequest) {
			signed(r)
			r.Status.DownloadURL = ""
		}, wantExists: true, current: true},
		"made for another tenant": {alter: func(r *velerov1.DownloadRequest) {
			signed(r)
			r.Annotations[oadpv1alpha1.NadrOriginNamespaceAnnotation] = "crew"
		}, wantForeign: true},
		"made without an origin": {alter: func(r *velerov1.DownloadRequest) {
			signed(r)
			r.Labels = nil
		}, wantForeign: true},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			o := gather(t, asked(t, test.alter), 0)
			assert.Equal(t, test.wantAnswerable, o.Answerable())
			assert.Equal(t, test.wantUseless, o.Useless())
			assert.Equal(t, test.wantForeign, o.Foreign)
			assert.Equal(t, !test.wantForeign, o.Verdict.Available)
			view := o.View()
			assert.Equal(t, test.wantExists, view.Velero.Exists)
			assert.Equal(t, test.current, view.Velero.Current)
			assert.False(t, downloadworkflow.Settled(view))
		})
	}
}

func TestWhatARequestIsInItsLife(t *testing.T) {
	w := asked(t, signed)
	waiting := gather(t, w, 0)
	assert.True(t, waiting.View().Validated)
	assert.True(t, gather(t, w, download.UnansweredLife).View().Expired, "nobody waits for ever")
	assert.False(t, gather(t, w, download.UnansweredLife-1).View().Expired)

	answered := waiting.NADR.DeepCopy()
	download.ApplyAnswer(answered, waiting)
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseCreated, answered.Status.Phase)
	require.Len(t, answered.Status.Conditions, 1)
	assert.Equal(t, "Processed True Success", answered.Status.Conditions[0].Type+" "+
		string(answered.Status.Conditions[0].Status)+" "+answered.Status.Conditions[0].Reason)
	require.NoError(t, w.Client.Status().Update(t.Context(), answered))
	now := gather(t, w, 0)
	assert.Nil(t, now.Verdict, "it does not matter any more")
	assert.True(t, downloadworkflow.Settled(now.View()))
	assert.Equal(t, fake.DownloadTime.Add(10*time.Minute), download.ExpiresAt(now.NADR).UTC())
	assert.True(t, gather(t, w, 10*time.Minute-1).View().Answered)
	over := gather(t, w, 10*time.Minute)
	assert.True(t, over.View().Expired)
	assert.False(t, downloadworkflow.Settled(over.View()))

	w.RetargetDownload(name, velerov1.DownloadTargetKindBackupResults, nightly)
	other := gather(t, w, 0)
	assert.False(t, other.View().Answered, "the URL is that of another file")
	assert.True(t, other.Useless())
	download.ApplyVerdict(other.NADR, *other.Verdict)
	assert.Nil(t, other.NADR.Status.VeleroDownloadRequest.Status)

	w.Remove(other.NADR)
	gone := gather(t, w, 0)
	assert.Equal(t, contract.DownloadView{Velero: contract.VeleroDownloadView{
		Exists: true, Name: "nadr-uid-logs", Phase: "Processed", Signed: true,
	}}, gone.View())
	assert.False(t, downloadworkflow.Settled(gone.View()), "it has left something")
	w.Remove(gone.Request)
	assert.True(t, downloadworkflow.Settled(gather(t, w, 0).View()))
}

func TestTheOriginOfAVeleroDownloadRequest(t *testing.T) {
	request := download.NewRequest(fake.NADR(name, "BackupLog", nightly), fake.OADPNamespace, velerov1.DownloadTarget{})
	ref, ours := download.OriginOf(request)
	assert.True(t, ours)
	assert.Equal(t, fake.Ref(name), ref)
	for title, alter := range map[string]func(*velerov1.DownloadRequest){
		"no name":     func(r *velerov1.DownloadRequest) { delete(r.Annotations, oadpv1alpha1.NadrOriginNameAnnotation) },
		"no label":    func(r *velerov1.DownloadRequest) { r.Labels = nil },
		"its own way": func(r *velerov1.DownloadRequest) { r.Name = "by-hand" },
	} {
		altered := request.DeepCopy()
		alter(altered)
		_, ours := download.OriginOf(altered)
		assert.False(t, ours, title)
	}
}

func TestADigestStandsForASignedURL(t *testing.T) {
	const url = "https://store/log?signature"
	assert.Empty(t, download.Digest(""))
	digest := download.Digest(url)
	assert.Regexp(t, "^sha256:[0-9a-f]{64}$", digest)
	assert.Equal(t, digest, download.Digest(digest), "an informer trims twice")
	assert.Len(t, download.Digest("sha256:"+strings.Repeat("0", 1<<20)), len(digest), "nobody can forge a long one")
}
