package activities_test

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/backup"
	"holdfast.dev/holdfast/workflows/contract"
)

const signature = "X-Amz-Signature=5ec2e7"

// storage is an object store that holds the contents of a backup since a while, or answers with another status.
type storage struct {
	age     time.Duration
	status  int
	bare    bool // without Last-Modified
	request *http.Request
}

func (s *storage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.request = r
	if s.status != 0 {
		http.Error(w, "no", s.status)
		return
	}
	if !s.bare {
		w.Header().Set("Last-Modified", time.Now().Add(-s.age).UTC().Format(http.TimeFormat))
	}
	_, _ = w.Write([]byte("contents"))
}

// stalled returns a world with a backup that Velero calls InProgress and has put into the store.
func stalled(t *testing.T, url string, caCert []byte) *fake.World {
	t.Helper()
	location := &velerov1.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: "default"}}
	location.Spec.Default = true
	location.Spec.ObjectStorage = &velerov1.ObjectStorageLocation{CACert: caCert}
	w := created(t, velerov1.BackupPhaseInProgress, location)
	made := w.Velero(ours)
	made.Spec.StorageLocation = "default"
	require.NoError(t, w.Client.Update(t.Context(), made))
	w.Backups.StallTimeout = 10 * time.Minute
	w.Sign = func(request *velerov1.DownloadRequest) string {
		assert.Equal(t, velerov1.DownloadTarget{Kind: velerov1.DownloadTargetKindBackupContents, Name: ours}, request.Spec.Target)
		return url + "/contents?" + signature
	}
	return w
}

func checkStall(t *testing.T, w *fake.World) (contract.BackupView, error) {
	t.Helper()
	return run(t, w, contract.CheckVeleroStall.Name, contract.BackupStep{Ref: fake.Ref(name)})
}

func TestAFinishedBackupThatVeleroCallsInProgressIsTold(t *testing.T) {
	store := &storage{age: 6 * time.Minute}
	server := httptest.NewServer(store)
	defer server.Close()
	w := stalled(t, server.URL, nil)

	view, err := checkStall(t, w)
	require.NoError(t, err)
	assert.True(t, view.Velero.Stalled)
	nab := w.Read(name)
	condition := stallCondition(nab)
	require.NotNil(t, condition)
	assert.Equal(t, "VeleroFinalStatusLost", condition.Reason)
	assert.Contains(t, condition.Message, "restart Velero")
	assert.Equal(t, velerov1.BackupPhaseInProgress, nab.Status.VeleroBackup.Status.Phase, "never a made-up phase")
	assert.Equal(t, []string{"Warning VeleroStalled " + condition.Message}, told(w))
	assert.Empty(t, downloadRequests(t, w), "the signed URL is not left lying about")
	assert.Equal(t, "bytes=0-0", store.request.Header.Get("Range"))

	assert.Empty(t, writesOf(w, func() { _, err = checkStall(t, w) }), "told once")
	require.NoError(t, err)

	w.SetVelero(ours, velerov1.BackupPhaseFailed)
	do(t, w, contract.RefreshBackup.Name)
	assert.Nil(t, stallCondition(w.Read(name)), "Velero, restarted, has said how it ended")
}

// An admin may delete the Velero Backup instead of restarting Velero: nothing comes to clear the condition after that.
func TestAStallEndsWithItsVeleroBackup(t *testing.T) {
	server := httptest.NewServer(&storage{age: time.Hour})
	defer server.Close()
	w := stalled(t, server.URL, nil)
	_, err := checkStall(t, w)
	require.NoError(t, err)
	require.NotNil(t, stallCondition(w.Read(name)))

	require.NoError(t, w.Client.Delete(t.Context(), w.Velero(ours)))
	view := do(t, w, contract.RefreshBackup.Name)
	assert.True(t, backup.Settled(view))
	assert.Nil(t, stallCondition(w.Read(name)))
}

func stallCondition(nab *oadpv1alpha1.NonAdminBackup) *metav1.Condition {
	for i := range nab.Status.Conditions {
		if nab.Status.Conditions[i].Type == "VeleroStalled" {
			return &nab.Status.Conditions[i]
		}
	}
	return nil
}

func downloadRequests(t *testing.T, w *fake.World) []velerov1.DownloadRequest {
	t.Helper()
	var list velerov1.DownloadRequestList
	require.NoError(t, w.Client.List(t.Context(), &list))
	return list.Items
}

func TestWhatIsNoStallIsNotTold(t *testing.T) {
	tests := map[string]struct {
		store storage
		phase velerov1.BackupPhase
	}{
		"not in the store yet":     {storage{status: http.StatusNotFound}, "InProgress"},
		"in the store since a bit": {storage{age: 4 * time.Minute}, "InProgress"},
		"Velero went on":           {storage{age: time.Hour}, "Finalizing"},
		"Velero has finished":      {storage{age: time.Hour}, "Completed"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			server := httptest.NewServer(&test.store)
			defer server.Close()
			w := stalled(t, server.URL, nil)
			w.SetVelero(ours, test.phase)
			view, err := checkStall(t, w)
			require.NoError(t, err)
			assert.False(t, view.Velero.Stalled)
			assert.Nil(t, stallCondition(w.Read(name)))
			assert.Empty(t, told(w))
			assert.Empty(t, downloadRequests(t, w))
		})
	}
}

// What cannot be told is an error, which shows no signed URL; nothing is claimed of the backup.
func TestAStallThatCannotBeToldIsAnError(t *testing.T) {
	elsewhere := httptest.NewServer(&storage{age: time.Hour})
	defer elsewhere.Close()
	closed := httptest.NewServer(&storage{})
	closed.Close()
	tests := map[string]struct {
		handler http.Handler
		url     string
		want    string
	}{
		"access denied":    {&storage{status: http.StatusForbidden}, "", "403 Forbidden"},
		"no date":          {&storage{bare: true}, "", "does not say when"},
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
			requireError(t, err, contract.ErrorKubernetes, true)
			assert.Contains(t, err.Error(), test.want)
			assert.NotContains(t, err.Error(), signature)
			assert.Nil(t, stallCondition(w.Read(name)))
			assert.Empty(t, downloadRequests(t, w))
		})
	}
}

func TestTheStoreIsTrustedAsVeleroTrustsIt(t *testing.T) {
	server := httptest.NewTLSServer(&storage{age: time.Hour})
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	_, err := checkStall(t, stalled(t, server.URL, nil))
	require.ErrorContains(t, err, "certificate signed by unknown authority")
	_, err = checkStall(t, stalled(t, server.URL, []byte("nonsense")))
	require.ErrorContains(t, err, "spec.objectStorage.caCert holds no certificate")
	view, err := checkStall(t, stalled(t, server.URL, authority))
	require.NoError(t, err)
	assert.True(t, view.Velero.Stalled)
}

// Velero may be away: the request it does not answer is taken back.
func TestAVeleroThatDoesNotAnswerIsNotWaitedForWithoutEnd(t *testing.T) {
	w := stalled(t, "", nil)
	w.Sign = nil
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := w.Backups.CheckStall(ctx, contract.BackupStep{Ref: fake.Ref(name)})
	require.ErrorContains(t, err, "wait for Velero to answer DownloadRequest")
	assert.Empty(t, downloadRequests(t, w))
	assert.Contains(t, err.Error(), ours, "whoever reads it knows which backup")
}
