package download_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
	workflow "holdfast.dev/holdfast/workflows/download"
)

const logs, signedURL = "logs", "https://store/log?X-Amz-Signature=0123456789abcdef"

// downloadStep runs an activity of download requests under its wire name, at a time after the request.
func downloadStep(t *testing.T, w *fake.World, after time.Duration, activity string) (contract.DownloadView, error) {
	t.Helper()
	downloads := w.Downloads(func() time.Time { return fake.DownloadTime.Add(after) })
	return activitytest.Performed[contract.DownloadView](t, downloads, activity, contract.ObjectStep{Ref: fake.Ref(logs)})
}

func downloadSteps(t *testing.T, w *fake.World, activities ...string) contract.DownloadView {
	t.Helper()
	var view contract.DownloadView
	for _, activity := range activities {
		var err error
		view, err = downloadStep(t, w, 0, activity)
		require.NoError(t, err, activity)
	}
	return view
}

func downloading(t *testing.T, objects ...client.Object) *fake.World {
	t.Helper()
	return fake.New(t, append(objects, fake.NADR(logs, velerov1.DownloadTargetKindBackupLog, activitytest.Name))...)
}

func inStore() []client.Object {
	return fake.Taken(activitytest.Name, fake.StoreLocation, fake.Namespace)
}

func signDownload(w *fake.World) {
	w.SignDownload(logs, signedURL, fake.DownloadTime.Add(10*time.Minute))
}

func TestADownloadIsRequestedOnceAndHandedOn(t *testing.T) {
	w := downloading(t, inStore()...)
	view := downloadSteps(t, w, contract.RequestDownload.Name)
	assert.Equal(t, contract.DownloadView{
		Found: true, Phase: "New", Validated: true,
		Velero: contract.VeleroDownloadView{Exists: true, Name: "nadr-uid-logs", Current: true},
	}, view)
	made := w.VeleroDownload(logs)
	assert.Equal(t, fake.VeleroName(activitytest.Name), made.Spec.Target.Name)
	assert.Equal(t, "uid-logs", made.Labels[oadpv1alpha1.NadrOriginNACUUIDLabel])
	assert.Equal(t, fake.Namespace+"/"+logs, made.Annotations[oadpv1alpha1.NadrOriginNamespaceAnnotation]+"/"+
		made.Annotations[oadpv1alpha1.NadrOriginNameAnnotation])
	assert.Empty(t, activitytest.Events(w))
	signDownload(w)
	view = downloadSteps(t, w, contract.RefreshDownload.Name)
	assert.True(t, view.Answered)
	assert.Equal(t, made.Name, view.Velero.Name)
	status := w.ReadDownload(logs).Status
	assert.Equal(t, signedURL, status.VeleroDownloadRequest.Status.DownloadURL)
	said := activitytest.Events(w)
	assert.Equal(t, []string{"Normal DownloadReady Velero has signed a URL, see status.velero.status; it expires at 2026-08-01T12:10:00Z"}, said)
	assert.NotContains(t, strings.Join(said, ""), "Signature")

	for range 2 {
		assert.Empty(t, activitytest.WritesOf(w, func() {
			downloadSteps(t, w, contract.RefreshDownload.Name, contract.RequestDownload.Name, contract.RemoveDownload.Name)
		}), "what is not due, or done, changes nothing")
	}
	assert.Empty(t, activitytest.Events(w))
}

func TestARefusedDownloadIsToldOnceAndAsksVeleroNothing(t *testing.T) {
	w := downloading(t, fake.Taken(activitytest.Name, fake.AdminLocation, "")...)
	for range 2 {
		view := downloadSteps(t, w, contract.RequestDownload.Name)
		assert.True(t, view.Refused)
	}
	assert.Equal(t, []string{"patch status NonAdminDownloadRequest"}, w.Writes())
	assert.Equal(t, []string{"Warning NonAdminBackupStorageLocationNotUsed " + oadpv1alpha1.MessageLocationNotUsed}, activitytest.Events(w))
}

// Velero's answer is final for this request: it is asked once, and what it says is shown.
func TestAFailedDownloadEndsWithVelerosMessage(t *testing.T) {
	w := downloading(t, inStore()...)
	w.Refusal = "the log was never written"
	downloadSteps(t, w, contract.RequestDownload.Name)
	require.EqualValues(t, "Failed", w.VeleroDownload(logs).Status.Phase)
	view := downloadSteps(t, w, contract.RefreshDownload.Name)
	assert.False(t, view.Validated, "the verdict of before does not hold")
	for range 2 {
		view = downloadSteps(t, w, contract.RequestDownload.Name)
		assert.True(t, view.Refused && !view.Velero.Exists, "%+v", view)
		assert.True(t, workflow.Settled(view))
	}
	const why = "cannot get nonadminbackup: Velero has not signed a URL: the log was never written; " +
		"create another NonAdminDownloadRequest to try again"
	status := w.ReadDownload(logs).Status
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseBackingOff, status.Phase)
	assert.Equal(t, why, status.Conditions[0].Message)
	assert.Equal(t, []string{"Warning NonAdminBackupNotAvailable " + why}, activitytest.Events(w))

	w.Refusal = ""
	w.RetargetDownload(logs, velerov1.DownloadTargetKindBackupResults, activitytest.Name)
	view = downloadSteps(t, w, contract.RefreshDownload.Name, contract.RequestDownload.Name)
	assert.True(t, view.Velero.Exists && !view.Refused, "another file is another question")
}

func TestADownloadOfAnUnknownPhaseIsWaitedFor(t *testing.T) {
	w := downloading(t, inStore()...)
	downloadSteps(t, w, contract.RequestDownload.Name)
	made := w.VeleroDownload(logs)
	made.Status.Phase = "OfTomorrow"
	require.NoError(t, w.Client.Update(t.Context(), made))
	view := downloadSteps(t, w, contract.RefreshDownload.Name)
	assert.True(t, view.Validated && view.Velero.Current && !view.Answered, "%+v", view)
	assert.Equal(t, "OfTomorrow", view.Velero.Phase)
}

func TestARequestOfTheSameNameThatIsSomebodyElsesIsLeftAlone(t *testing.T) {
	foreign := &velerov1.DownloadRequest{}
	foreign.Namespace, foreign.Name = fake.OADPNamespace, "nadr-uid-logs"
	foreign.Status.Phase, foreign.Status.DownloadURL = velerov1.DownloadRequestPhaseProcessed, signedURL
	w := downloading(t, append(inStore(), foreign)...)
	view := downloadSteps(t, w, contract.RefreshDownload.Name, contract.RequestDownload.Name)
	assert.True(t, view.Refused)
	assert.Contains(t, w.ReadDownload(logs).Status.Conditions[0].Message, `"nadr-uid-logs" exists and was not made for this`)
	w.Remove(w.ReadDownload(logs))
	downloadSteps(t, w, contract.RemoveDownload.Name)
	assert.NotNil(t, w.VeleroDownload(logs))
}

// A process may die after each write, and an answer may be lost after each.
func TestADownloadThatIsCutOffAnywhereEndsTheSame(t *testing.T) {
	for _, life := range []struct {
		title    string
		after    time.Duration
		activity string
		begin    func(*fake.World)
	}{
		{"requested", 0, contract.RequestDownload.Name, func(*fake.World) {}},
		{"asked for another file", 0, contract.RequestDownload.Name, func(w *fake.World) {
			downloadSteps(t, w, contract.RequestDownload.Name)
			signDownload(w)
			downloadSteps(t, w, contract.RefreshDownload.Name)
			w.RetargetDownload(logs, velerov1.DownloadTargetKindBackupResults, activitytest.Name)
		}},
		{"answered", 0, contract.RefreshDownload.Name, func(w *fake.World) {
			downloadSteps(t, w, contract.RequestDownload.Name)
			signDownload(w)
		}},
		{"expired", time.Hour, contract.RemoveDownload.Name, func(w *fake.World) {
			downloadSteps(t, w, contract.RequestDownload.Name)
		}},
	} {
		t.Run(life.title, func(t *testing.T) {
			undisturbed := downloading(t, inStore()...)
			life.begin(undisturbed)
			want, err := downloadStep(t, undisturbed, life.after, life.activity)
			require.NoError(t, err)
			for at := 1; ; at++ {
				w := downloading(t, inStore()...)
				life.begin(w)
				writes := 0
				w.Lose(func(string, client.Object) error {
					if writes++; writes == at {
						return fake.ErrAway
					}
					return nil
				})
				_, err := downloadStep(t, w, life.after, life.activity)
				if err == nil {
					require.Greater(t, at, 1, "nothing was written")
					return
				}
				w.Lose(nil)
				got, err := downloadStep(t, w, life.after, life.activity)
				require.NoError(t, err)
				assert.Equal(t, want, got, "cut off after write %d", at)
			}
		})
	}
}

func TestWhatIsOverGoes(t *testing.T) {
	w := downloading(t, inStore()...)
	downloadSteps(t, w, contract.RequestDownload.Name)
	signDownload(w)
	downloadSteps(t, w, contract.RefreshDownload.Name)
	activitytest.Events(w)
	view, err := downloadStep(t, w, 10*time.Minute, contract.RemoveDownload.Name)
	require.NoError(t, err)
	assert.False(t, view.Found || view.Velero.Exists)
	assert.Nil(t, w.ReadDownload(logs))
	assert.Nil(t, w.VeleroDownload(logs))
	assert.Equal(t, []string{"Normal DownloadExpired the request has expired and was deleted; create another one for a new URL"}, activitytest.Events(w))
}

func TestADownloadWaitsForTheAPIServer(t *testing.T) {
	w := downloading(t, inStore()...)
	w.Fail(func(verb string, _ client.Object) error {
		if verb == "create" {
			return fake.ErrAway
		}
		return nil
	})
	_, err := downloadStep(t, w, 0, contract.RequestDownload.Name)
	require.ErrorContains(t, err, "create DownloadRequest openshift-adp/nadr-uid-logs: connection refused")
	w.Fail(nil)
	view := downloadSteps(t, w, contract.RequestDownload.Name)
	assert.True(t, view.Velero.Exists)
}
