package fdbtools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/fdbsim/state"
	"holdfast.dev/holdfast/workflows/contract"
)

const pollInterval = 10 * time.Millisecond

func pause() { time.Sleep(pollInterval) }

func TestTagThatWasNeverUsed(t *testing.T) {
	t.Parallel()
	seen := newScene(t).inspect(true)
	assert.Nil(t, seen.Failure)
	require.Len(t, seen.Tags, 1)
	assert.Equal(t, "t1", seen.Tags[0].Tag)
	assert.False(t, seen.Tags[0].Running)
	assert.Empty(t, seen.Containers)
}

func TestHealthyBackupCostsOneCommand(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	require.True(t, s.command(contract.FDBStart, s.url(stamp)).Done)
	s.agent()
	eventually.Succeeds(t, fdbPatience, func() error {
		seen := s.inspect(false)
		switch {
		case seen.Failure != nil:
			return fmt.Errorf("%s: %s", seen.Failure.Class, seen.Failure.Message)
		case seen.Tags[0].State != fdb.StateRunningDifferentially:
			return fmt.Errorf("it is %s", seen.Tags[0].State)
		}
		return nil
	})
	before := len(s.calls("status"))
	seen := s.inspect(false)
	assert.Len(t, s.calls("status"), before+1)
	assert.Equal(t, s.url(stamp), seen.Tags[0].URL)
	assert.EqualValues(t, 3600, seen.Tags[0].SnapshotPeriodSeconds)
	assert.NotNil(t, seen.Tags[0].Latest)
	assert.Empty(t, seen.Containers)

	s.object.Status.Backups = []fdbv1alpha1.BackupDetails{
		{Tag: "old", URL: s.url("-old")}, {Tag: "t1", URL: s.url(stamp) + "&cto=5"},
	}
	seen = s.inspect(true)
	require.Len(t, seen.Tags, 2)
	assert.Equal(t, []string{"old", "t1"}, []string{seen.Tags[0].Tag, seen.Tags[1].Tag})
	require.Len(t, seen.Containers, 2, "the running one is in the status, with other parameters")
	assert.Equal(t, contract.FDBContainer{URL: s.url("-old"), Missing: true}, seen.Containers[0])
	assert.Equal(t, s.url(stamp)+"&cto=5", seen.Containers[1].URL)
	require.True(t, seen.Containers[1].Restorable, "%+v", seen.Containers[1])
	assert.NotZero(t, seen.Containers[1].Oldest.Time)
	assert.NotZero(t, seen.Containers[1].Latest.Time)
}

// agent runs a backup agent of the cluster until the test ends.
func (s *scene) agent() {
	s.t.Helper()
	folder := s.t.TempDir()
	files := map[string][]byte{"fdb.cluster": []byte(s.kind.Status.ConnectionString), "accounts": s.secret.Data["credentials"]}
	for name, content := range files {
		require.NoError(s.t, os.WriteFile(filepath.Join(folder, name), content, 0o600))
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	agent := exec.CommandContext(ctx, s.sim.Tool("7.3", "backup_agent"), "-C", filepath.Join(folder, "fdb.cluster"))
	agent.Env = []string{"FDB_BLOB_CREDENTIALS=" + filepath.Join(folder, "accounts")}
	agent.Dir = folder
	require.NoError(s.t, agent.Start())
	s.t.Cleanup(func() {
		cancel()
		_ = agent.Wait()
	})
}

// A description writes into the container: what a turn may be deleting stays as it is.
func TestWhatATurnMayDeleteIsNotDescribed(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	require.True(t, s.command(contract.FDBStart, s.url(stamp)).Done)
	point := &fdbv1alpha1.RestorePoint{Version: 7}
	s.object.Status.Backups = []fdbv1alpha1.BackupDetails{
		{Tag: "t1", URL: s.url("-old"), State: fdb.StateAborted, OldestData: point, LatestRestorable: point},
		{Tag: "t1", URL: s.url(stamp), State: fdb.StateRunning},
	}
	described := func() (urls []string) {
		for _, container := range s.inspect(true).Containers {
			urls = append(urls, container.URL)
		}
		return urls
	}
	assert.Equal(t, []string{s.url("-old"), s.url(stamp)}, described(), "all data are kept")
	s.object.Spec.Expiry.MaxRetention = "720h"
	assert.Equal(t, []string{s.url(stamp)}, described())
	s.object.Spec.Expiry.MinRestorable = "168h"
	now := metav1.Now()
	s.object.Status.Backups[1].OldestData = &fdbv1alpha1.RestorePoint{Version: 9, Timestamp: &now}
	assert.Equal(t, []string{s.url("-old"), s.url(stamp)}, described(), "it stays for a week")
	soon := metav1.NewTime(now.Add(-168*time.Hour + 59*time.Minute))
	s.object.Status.Backups[1].OldestData.Timestamp = &soon
	assert.Equal(t, []string{s.url(stamp)}, described())
}

func TestErrorsOfABackupThatDoesNotMoveAreTold(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.runs(state.Running, s.url(stamp), 3600)
	require.NoError(t, s.sim.SetErrors(s.cluster, "t1", fdbsim.Problem{
		At: time.Now(), Message: "Platform error with " + fdbSecret, Task: "file_backup_write_range_5.2",
	}))
	tag := s.inspect(false).Tags[0]
	require.NotEmpty(t, tag.Errors)
	assert.Contains(t, tag.Errors[0], "Platform error")
	assert.NotContains(t, tag.Errors[0], fdbSecret)
	assert.Len(t, s.calls("status"), 2)

	s.fail("fdbbackup status", 1, "ERROR: odd")
	assert.NotNil(t, s.inspect(false).Failure)
}

func TestContainersThatAreNotTheObjectsAreNotOpened(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.runs(state.Running, "file:///etc/backup-1", 3600)
	other := newObjectStore(t)
	s.object.Status.Backups = []fdbv1alpha1.BackupDetails{
		{Tag: "t1", URL: "file:///etc"},
		{Tag: "t1", URL: "blobstore://victim@127.0.0.1:" + other.address[len("127.0.0.1:"):] + "/lab?bucket=backups&region=r&sc=0"},
		{Tag: "t1", URL: "blobstore://lab:s3cret@" + other.address + "/lab?bucket=backups&region=r&sc=0"},
		{Tag: "--blob-credentials=/etc/passwd", URL: "--blob-credentials=/etc/passwd"},
	}
	seen := s.inspect(true)
	assert.Nil(t, seen.Failure)
	assert.Len(t, seen.Tags, 1, "what is no tag is not asked for")
	require.Len(t, seen.Containers, 5)
	for at, class := range []contract.FDBClass{
		contract.FDBClassBadURL, contract.FDBClassDenied, contract.FDBClassBadURL, contract.FDBClassBadURL, contract.FDBClassBadURL,
	} {
		require.NotNil(t, seen.Containers[at].Failure)
		assert.Equal(t, class, seen.Containers[at].Failure.Class, seen.Containers[at].Failure.Message)
		assert.NotContains(t, seen.Containers[at].Failure.Message, "s3cret")
	}
	assert.Zero(t, other.asked)
	assert.Empty(t, s.calls("describe"))
	calls, err := s.sim.Calls("")
	require.NoError(t, err)
	assert.Empty(t, calls)
}

// The others are many, and each has its look one day.
func TestTheNewestContainersAreDescribedAndOneOther(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, letter := range "abcdefghijkl" {
		s.object.Status.Backups = append(s.object.Status.Backups, fdbv1alpha1.BackupDetails{Tag: "t1", URL: s.url("-" + string(letter))})
	}
	others := map[string]bool{}
	for len(others) < 2 {
		seen := s.inspect(true)
		require.Len(t, seen.Containers, 8)
		require.Subset(t, []string{s.url("-a"), s.url("-b"), s.url("-c"), s.url("-d"), s.url("-e")}, []string{seen.Containers[0].URL})
		assert.Equal(t, s.url("-f"), seen.Containers[1].URL)
		assert.Equal(t, s.url("-l"), seen.Containers[7].URL)
		others[seen.Containers[0].URL] = true
	}
}

func TestStateIsKnownWithoutCredentials(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.runs(state.RunningDifferentially, s.url(stamp), 3600)
	s.secret = nil
	seen := s.inspect(true)
	assert.Nil(t, seen.Failure)
	assert.True(t, seen.Tags[0].Running)
	require.Len(t, seen.Containers, 1)
	require.NotNil(t, seen.Containers[0].Failure)
	assert.Contains(t, seen.Containers[0].Failure.Message, `no Secret "accounts"`)
}

func TestObjectThatIsGoneIsNotInspected(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.object.UID = "uid-2"
	assert.Equal(t, contract.FDBInspection{}, s.inspect(true))
}

func TestUnreachableClusterIsToldAfterItsLimit(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes as long as a status may take")
	}
	s := newScene(t)
	require.NoError(t, s.sim.Unreachable(s.cluster, true))
	trouble := s.inspect(true).Failure
	require.NotNil(t, trouble)
	assert.Equal(t, contract.FDBClassTimeout, trouble.Class)
	assert.Len(t, s.calls("status"), 1)
	require.NoError(t, s.sim.Unreachable(s.cluster, false))
	assert.Nil(t, s.inspect(true).Failure)
}

// needsTLS makes the cluster one that speaks TLS, with files that are not there.
func needsTLS(s *scene) {
	s.kind.Status.ConnectionString = "lab:abc123@127.0.0.1:4500:tls"
	s.object.Spec.PodTemplateSpec = tlsTemplate("gone")
}

// tlsTemplate has the agents take their TLS files from a Secret.
func tlsTemplate(secret string) *runtime.RawExtension {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "foundationdb",
			Env: []corev1.EnvVar{
				{Name: "FDB_TLS_CERTIFICATE_FILE", Value: "/tls/tls.crt"},
				{Name: "FDB_TLS_KEY_FILE", Value: "/tls/tls.key"},
				{Name: "FDB_TLS_VERIFY_PEERS", Value: "Check.Valid=1"},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "tls", MountPath: "/tls"}},
		}},
		Volumes: []corev1.Volume{{
			Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}},
		}},
	}}
	raw, _ := json.Marshal(template) // always works
	return &runtime.RawExtension{Raw: raw}
}

func TestToolsSpeakTLSAsTheAgentsDo(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	needsTLS(s)
	trouble := s.inspect(false).Failure
	require.NotNil(t, trouble)
	assert.Contains(t, trouble.Message, `key "tls.crt" in Secret "gone"`)
	s.more = append(s.more, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gone"}, Data: map[string][]byte{
		"tls.crt": []byte("certificate"), "tls.key": []byte("key"),
	}})
	assert.Nil(t, s.inspect(false).Failure)
	env := s.calls("status")[0].Env
	assert.ElementsMatch(t, []string{
		"TZ", "HOME", "TMPDIR", "FDB_BLOB_CREDENTIALS", "FDB_TLS_CERTIFICATE_FILE", "FDB_TLS_KEY_FILE", "FDB_TLS_VERIFY_PEERS",
	}, env)
}
