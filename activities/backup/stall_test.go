package backup_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/backup"
	"holdfast.dev/holdfast/workflows/contract"
)

// stalled returns a world with a backup that Velero calls InProgress and has put into the store.
func stalled(t *testing.T, url string, caCert []byte) *fake.World {
	t.Helper()
	location := &velerov1.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: "default"}}
	location.Spec.Default = true
	location.Spec.ObjectStorage = &velerov1.ObjectStorageLocation{CACert: caCert}
	w := activitytest.Created(t, velerov1.BackupPhaseInProgress, location)
	made := w.Velero(activitytest.Ours)
	made.Spec.StorageLocation = "default"
	require.NoError(t, w.Client.Update(t.Context(), made))
	w.Backups.StallTimeout = 10 * time.Minute
	w.Sign = func(request *velerov1.DownloadRequest) string {
		assert.Equal(t, velerov1.DownloadTarget{Kind: velerov1.DownloadTargetKindBackupContents, Name: activitytest.Ours}, request.Spec.Target)
		return url + "/contents?" + activitytest.Signature
	}
	return w
}

func checkStall(t *testing.T, w *fake.World) (contract.BackupView, error) {
	t.Helper()
	return activitytest.Run(t, w, contract.CheckVeleroStall.Name, contract.BackupStep{Ref: fake.Ref(activitytest.Name)})
}

func TestAFinishedBackupThatVeleroCallsInProgressIsTold(t *testing.T) {
	store := &activitytest.Storage{Age: 6 * time.Minute}
	server := httptest.NewServer(store)
	defer server.Close()
	w := stalled(t, server.URL, nil)

	view, err := checkStall(t, w)
	require.NoError(t, err)
	assert.True(t, view.Velero.Stalled)
	nab := w.Read(activitytest.Name)
	condition := stallCondition(nab)
	require.NotNil(t, condition)
	assert.Equal(t, "VeleroFinalStatusLost", condition.Reason)
	assert.Contains(t, condition.Message, "restart Velero")
	assert.Equal(t, velerov1.BackupPhaseInProgress, nab.Status.VeleroBackup.Status.Phase, "never a made-up phase")
	assert.Equal(t, []string{"Warning VeleroStalled " + condition.Message}, activitytest.Events(w))
	assert.Empty(t, activitytest.DownloadRequests(t, w), "the signed URL is not left lying about")
	assert.Equal(t, "bytes=0-0", store.Request.Header.Get("Range"))

	assert.Empty(t, activitytest.WritesOf(w, func() { _, err = checkStall(t, w) }), "told once")
	require.NoError(t, err)

	w.SetVelero(activitytest.Ours, velerov1.BackupPhaseFailed)
	activitytest.Do(t, w, contract.RefreshBackup.Name)
	assert.Nil(t, stallCondition(w.Read(activitytest.Name)), "Velero, restarted, has said how it ended")
}

// An admin may delete the Velero Backup instead of restarting Velero: nothing comes to clear the condition after that.
func TestAStallEndsWithItsVeleroBackup(t *testing.T) {
	server := httptest.NewServer(&activitytest.Storage{Age: time.Hour})
	defer server.Close()
	w := stalled(t, server.URL, nil)
	_, err := checkStall(t, w)
	require.NoError(t, err)
	require.NotNil(t, stallCondition(w.Read(activitytest.Name)))

	require.NoError(t, w.Client.Delete(t.Context(), w.Velero(activitytest.Ours)))
	view := activitytest.Do(t, w, contract.RefreshBackup.Name)
	assert.True(t, backup.Settled(view))
	assert.Nil(t, stallCondition(w.Read(activitytest.Name)))
}

func stallCondition(nab *oadpv1alpha1.NonAdminBackup) *metav1.Condition {
	for i := range nab.Status.Conditions {
		if nab.Status.Conditions[i].Type == "VeleroStalled" {
			return &nab.Status.Conditions[i]
		}
	}
	return nil
}

func TestWhatIsNoStallIsNotTold(t *testing.T) {
	tests := map[string]struct {
		store activitytest.Storage
		phase velerov1.BackupPhase
	}{
		"not in the store yet":     {activitytest.Storage{Status: http.StatusNotFound}, "InProgress"},
		"in the store since a bit": {activitytest.Storage{Age: 4 * time.Minute}, "InProgress"},
		"Velero went on":           {activitytest.Storage{Age: time.Hour}, "Finalizing"},
		"Velero has finished":      {activitytest.Storage{Age: time.Hour}, "Completed"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			server := httptest.NewServer(&test.store)
			defer server.Close()
			w := stalled(t, server.URL, nil)
			w.SetVelero(activitytest.Ours, test.phase)
			view, err := checkStall(t, w)
			require.NoError(t, err)
			assert.False(t, view.Velero.Stalled)
			assert.Nil(t, stallCondition(w.Read(activitytest.Name)))
			assert.Empty(t, activitytest.Events(w))
			assert.Empty(t, activitytest.DownloadRequests(t, w))
		})
	}
}

// What cannot be told is an error, which shows no signed URL; nothing is claimed of the backup.
func TestAStallThatCannotBeToldIsAnError(t *testing.T) {
	elsewhere := httptest.NewServer(&activitytest.Storage{Age: time.Hour})
	defer elsewhere.Close()
	closed := httptest.NewServer(&activitytest.Storage{})
	closed.Close()
	tests := map[string]struct {
		handler http.Handler
		url     string
		want    string
	}{
		"access denied":    {&activitytest.Storage{Status: http.StatusForbidden}, "", "403 Forbidden"},
		"no date":          {&activitytest.Storage{Bare: true}, "", "does not say when"},
		"redirected":       {http.RedirectHandler(elsewhere.URL, http.StatusFound), "", "302 Found"},
		"nobody listens":   {nil, closed.URL, "connect: connection refused"},
		"no URL":           {nil, "http://[::1", "cannot be parsed"},
		"unknown protocol": {nil, "ftp://store", "unsupported protocol scheme"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			url := test.url
			if test.handler != nil {
				server := httptest.NewServer(test.handler)
				defer server.Close()
				url = server.URL
			}
			w := stalled(t, url, nil)
			_, err := checkStall(t, w)
			activitytest.RequireError(t, err, contract.ErrorKubernetes, true)
			assert.Contains(t, err.Error(), test.want)
			assert.NotContains(t, err.Error(), activitytest.Signature)
			assert.Nil(t, stallCondition(w.Read(activitytest.Name)))
			assert.Empty(t, activitytest.DownloadRequests(t, w))
		})
	}
}

func TestTheStoreIsTrustedAsVeleroTrustsIt(t *testing.T) {
	server := httptest.NewTLSServer(&activitytest.Storage{Age: time.Hour})
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	_, err := checkStall(t, stalled(t, server.URL, nil))
	require.ErrorContains(t, err, "certificate signed by unknown authority")
	_, err = checkStall(t, stalled(t, server.URL, []byte("nonsense")))
	require.ErrorContains(t, err, "what it names as CA certificate holds none")
	view, err := checkStall(t, stalled(t, server.URL, authority))
	require.NoError(t, err)
	assert.True(t, view.Velero.Stalled)

	w := stalled(t, server.URL, nil)
	location := &velerov1.BackupStorageLocation{}
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKey{Namespace: fake.OADPNamespace, Name: "default"}, location))
	location.Spec.ObjectStorage.CACertRef = &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "ca"}, Key: "bundle",
	}
	require.NoError(t, w.Client.Update(t.Context(), location))
	_, err = checkStall(t, w)
	require.ErrorContains(t, err, "there is no Secret openshift-adp/ca")
	secret := &corev1.Secret{Data: map[string][]byte{"bundle": authority}}
	secret.Namespace, secret.Name = fake.OADPNamespace, "ca"
	require.NoError(t, w.Client.Create(t.Context(), secret))
	view, err = checkStall(t, w)
	require.NoError(t, err)
	assert.True(t, view.Velero.Stalled, "as an administrator's location may say since Velero 1.18")
}

// A Velero after 1.18 says why there is no URL, instead of nothing.
func TestARefusalOfVelerosToSignIsNotWaitedFor(t *testing.T) {
	w := stalled(t, "", nil)
	w.Sign, w.Refusal = nil, `backup "x" has not written any artifacts`
	_, err := checkStall(t, w)
	activitytest.RequireError(t, err, contract.ErrorKubernetes, true)
	require.ErrorContains(t, err, "no URL from Velero: DownloadRequest")
	require.ErrorContains(t, err, w.Refusal)
	assert.Empty(t, activitytest.DownloadRequests(t, w))
}

// Velero may be away: the request it does not answer is taken back.
func TestAVeleroThatDoesNotAnswerIsNotWaitedForWithoutEnd(t *testing.T) {
	w := stalled(t, "", nil)
	w.Sign = nil
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		_, err := w.Backups.CheckStall(t.Context(), contract.BackupStep{Ref: fake.Ref(activitytest.Name)})
		require.ErrorContains(t, err, "wait for Velero to answer DownloadRequest")
		assert.Contains(t, err.Error(), activitytest.Ours, "the error names the backup")
		assert.Less(t, time.Since(started), 10*time.Second, "the limit of the activity")
	})
	assert.Empty(t, activitytest.DownloadRequests(t, w))
}
