// Package fdbtools_test runs the activities that run FoundationDB's tools over the tools' stand-in.
package fdbtools_test

import (
	"encoding/xml"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"holdfast.dev/holdfast/activities/fdb/tools"
	"holdfast.dev/holdfast/activities/fdbtool"
	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/fdbsim/state"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	fdbPatience = 2 * time.Minute
	fdbSecret   = "s3cr3t-of-lab"
	fdbGen      = 3
)

// scene is a FoundationDB cluster and an object store with one FoundationDBBackup, and the activities that serve it.
type scene struct {
	t       *testing.T
	sim     *fdbsim.Sim
	store   *objectStore
	cluster string // description:id
	object  *fdbv1alpha1.FoundationDBBackup
	secret  *corev1.Secret
	kind    *foundationdbv1beta2.FoundationDBCluster
	more    []client.Object
	locker  tools.FDBLocker
	tools   *fdbtool.Runner
}

func newScene(t *testing.T) *scene {
	t.Helper()
	folder := t.TempDir()
	sim, err := fdbsim.Install(filepath.Join(folder, "bin"), filepath.Join(folder, "state"), "7.3.72")
	require.NoError(t, err)
	connection, err := sim.NewCluster("lab", "abc123")
	require.NoError(t, err)
	s := &scene{t: t, sim: sim, store: newObjectStore(t), cluster: "lab:abc123"}
	require.NoError(t, sim.Control(s.cluster, func(c *fdbsim.Control) { c.AgentWait = time.Millisecond }))
	s.object = &fdbv1alpha1.FoundationDBBackup{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "lab", UID: "uid-1", Generation: fdbGen,
	}}
	s.object.Spec = fdbv1alpha1.FoundationDBBackupSpec{
		Credentials: fdbv1alpha1.CredentialsReference{SecretName: "accounts"}, Tag: "t1", SnapshotPeriodSeconds: 3600,
		Destination:   fdbv1alpha1.BackupDestination{Endpoint: s.store.address, Bucket: "backups"},
		URLParameters: []string{"secure_connection=0", "region=us-east-1"},
	}
	s.secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "accounts"}, Data: map[string][]byte{
		"credentials": fmt.Appendf(nil, `{"accounts":{"lab@127.0.0.1":{"secret":%q}}}`, fdbSecret),
	}}
	s.kind = &foundationdbv1beta2.FoundationDBCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lab"}}
	s.kind.Status.ConnectionString, s.kind.Status.RunningVersion = connection, "7.3.72"
	s.tools = &fdbtool.Runner{BinDir: sim.BinDir, TempDir: filepath.Join(folder, "tmp"), Folders: []string{sim.Store.Dir}}
	require.NoError(t, os.Mkdir(s.tools.TempDir, 0o700))
	t.Cleanup(func() { assert.NoError(t, s.tools.Close()) })
	return s
}

// url is that of a backup of the object, started at some time.
func (s *scene) url(stamp string) string {
	return "blobstore://lab@" + s.store.address + "/lab" + stamp + "?bucket=backups&region=us-east-1&secure_connection=0"
}

func (s *scene) ref() contract.ObjectRef {
	return contract.ObjectRef{Namespace: "team", Name: "lab", UID: "uid-1"}
}

func (s *scene) activities() *testsuite.TestActivityEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	builder := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(s.object).WithObjects(s.more...)
	if s.secret != nil {
		builder.WithObjects(s.secret)
	}
	if s.kind != nil {
		builder.WithObjects(s.kind)
	}
	(&tools.Tools{Reader: builder.Build(), Runner: s.tools, Locker: s.locker}).Register(env)
	return env
}

func (s *scene) inspect(deep bool) contract.FDBInspection {
	s.t.Helper()
	answer, err := s.activities().ExecuteActivity(contract.InspectFDBBackup.Name, contract.FDBInspect{Ref: s.ref(), Deep: deep})
	require.NoError(s.t, err)
	var seen contract.FDBInspection
	require.NoError(s.t, answer.Get(&seen))
	return seen
}

// command runs a command for the present generation.
func (s *scene) command(operation contract.FDBOperation, url string) contract.FDBOutcome {
	s.t.Helper()
	command := contract.FDBCommand{Ref: s.ref(), Operation: operation, Generation: fdbGen}
	if operation != contract.FDBPause && operation != contract.FDBResume {
		command.Tag, command.URL = "t1", url
	}
	return s.run(command)
}

func (s *scene) run(command contract.FDBCommand) contract.FDBOutcome {
	s.t.Helper()
	answer, err := s.activities().ExecuteActivity(contract.RunFDBCommand.Name, command)
	require.NoError(s.t, err)
	var outcome contract.FDBOutcome
	require.NoError(s.t, answer.Get(&outcome))
	return outcome
}

// runs has a backup on tag t1 that runs, without agents having done anything.
func (s *scene) runs(phase, url string, period int64) {
	s.t.Helper()
	s.change(func(c *fdbsimCluster) {
		c.Backups = append(c.Backups, &fdbsimBackup{
			Tag: "t1", UID: "0123456789abcdef0123456789abcdef", State: phase, URL: url, IntervalSeconds: period, LogBegin: 1, LogEnd: 2,
			Snapshot: &state.Snapshot{Begin: 1, EndTarget: 2, IntervalSeconds: period},
		})
	})
}

type (
	fdbsimCluster = state.Cluster
	fdbsimBackup  = state.Backup
)

func (s *scene) change(change func(*fdbsimCluster)) {
	s.t.Helper()
	require.NoError(s.t, s.sim.Change(s.cluster, func(c *fdbsimCluster) error {
		change(c)
		return nil
	}))
}

// state is the cluster's, with the backup on tag t1, nil if there is none.
func (s *scene) state() (*fdbsimCluster, *fdbsimBackup) {
	s.t.Helper()
	c, err := s.sim.State(s.cluster)
	require.NoError(s.t, err)
	return c, c.Backup("t1")
}

// calls are the runs of a sub-command of fdbbackup for the cluster.
func (s *scene) calls(sub string) []fdbsim.Call {
	s.t.Helper()
	calls, err := s.sim.CallsOf(s.cluster, "fdbbackup", sub)
	require.NoError(s.t, err)
	return calls
}

// objectStore is as much of an S3 server as a backup needs, in memory.
type objectStore struct {
	address string

	mutex   sync.Mutex
	objects map[string][]byte // by bucket/key
	deny    bool
	// closed: nothing can be written.
	closed bool
	asked  int
}

func newObjectStore(t *testing.T) *objectStore {
	t.Helper()
	store := &objectStore{objects: map[string][]byte{}}
	server := httptest.NewServer(store)
	t.Cleanup(server.Close)
	store.address = strings.TrimPrefix(server.URL, "http://")
	return store
}

// put stores objects, as keys below the bucket.
func (o *objectStore) put(keys ...string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.objects["backups/"] = nil
	for _, key := range keys {
		o.objects["backups/"+key] = nil
	}
}

func (o *objectStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.asked++
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	name := bucket + "/" + key
	_, bucketExists := o.objects[bucket+"/"]
	content, exists := o.objects[name]
	switch {
	case o.deny, o.closed && r.Method == http.MethodPut:
		w.WriteHeader(http.StatusForbidden)
	case r.Method == http.MethodPut:
		content, _ := io.ReadAll(r.Body)
		o.objects[name] = content
	case !bucketExists || (!exists && key != ""):
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		delete(o.objects, name)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet && key == "":
		o.list(w, bucket, r.URL.Query().Get("prefix"))
	case r.Method == http.MethodGet:
		_, _ = w.Write(content)
	}
}

func (o *objectStore) list(w io.Writer, bucket, prefix string) {
	type object struct {
		Key  string
		Size int
	}
	var answer struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []object
	}
	for name, content := range o.objects {
		key := strings.TrimPrefix(name, bucket+"/")
		if key != "" && key != name && strings.HasPrefix(key, prefix) {
			answer.Contents = append(answer.Contents, object{key, len(content)})
		}
	}
	_ = xml.NewEncoder(w).Encode(answer)
}
