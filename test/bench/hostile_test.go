package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

func TestWhatIsShippedIsReadFromTheManifest(t *testing.T) {
	const manifest = `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: budget}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: watcher}
spec:
  template:
    spec:
      containers:
        - name: watcher
          env: [{name: OTHER, value: "1"}, {name: GOMEMLIMIT, VALUE}]
          resources: {limits: {memory: 1Gi}}
`
	of, err := readShipped([]byte(strings.Replace(manifest, "VALUE", "value: 700MiB", 1)))
	require.NoError(t, err)
	assert.Equal(t, shipped{GoMemLimit: "700MiB", LimitMiB: 1024}, of)
	assert.Equal(t, []string{"GOMEMLIMIT=700MiB"}, of.environment())
	assert.Empty(t, shipped{}.environment())

	_, err = readShipped([]byte(strings.Replace(manifest, "VALUE", "valueFrom: {resourceFieldRef: {resource: limits.memory}}", 1)))
	require.ErrorContains(t, err, "no plain value")
	_, err = readShipped([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"))
	require.ErrorContains(t, err, "no Deployment")

	of, err = shippedWatcher()
	require.NoError(t, err)
	assert.Positive(t, of.LimitMiB)
}

func TestLargeIsAsLargeAsItSays(t *testing.T) {
	for _, bytes := range []int{100, annotationBytes, largeBytes} {
		data, err := json.Marshal(many(bytes))
		require.NoError(t, err)
		assert.InDelta(t, bytes, len(data), 100)
		assert.InDelta(t, bytes, sizeOf(manySelectors(bytes)), 100)
	}
}

func TestFewOfTheLargeAreDense(t *testing.T) {
	m := &models{large: []*oadpv1alpha1.NonAdminBackup{{}, {}}, dense: &oadpv1alpha1.NonAdminBackup{}}
	dense := 0
	for i := range 1000 {
		if m.pick(i) == m.dense {
			dense++
		}
	}
	assert.Equal(t, 20, dense)
}

func TestCopiesAreIncarnationsOfTheirOwn(t *testing.T) {
	nab := &oadpv1alpha1.NonAdminBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "model", UID: "1", ResourceVersion: "7"}}
	nab.Annotations = map[string]string{"kept": "yes"}
	made := copyOf(nab, types.NamespacedName{Namespace: "b", Name: "copy"})
	again := copyOf(nab, types.NamespacedName{Namespace: "b", Name: "copy"})
	assert.Equal(t, "NonAdminBackup", made.Kind)
	assert.Equal(t, "b/copy", made.Namespace+"/"+made.Name)
	assert.Equal(t, nab.Annotations, made.Annotations)
	assert.Empty(t, made.ResourceVersion, "etcd's own is served")
	assert.NotEqual(t, nab.UID, made.UID)
	assert.NotEqual(t, again.UID, made.UID)
	assert.Equal(t, "model", nab.Name)
}

func TestEtcdIsToldKeyAndValue(t *testing.T) {
	answer := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var put struct{ Key, Value []byte }
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		assert.NoError(t, json.Unmarshal(body, &put))
		assert.Equal(t, "/registry/a", string(put.Key))
		assert.JSONEq(t, `{"b":1}`, string(put.Value))
		w.WriteHeader(answer)
		_, _ = w.Write([]byte("database space exceeded"))
	}))
	defer server.Close()
	store := &etcdStore{url: server.URL, http: server.Client()}
	size, err := store.put(t.Context(), "/registry/a", map[string]int{"b": 1})
	require.NoError(t, err)
	assert.Equal(t, len(`{"b":1}`), size)

	answer = http.StatusTooManyRequests
	_, err = store.put(t.Context(), "/registry/a", map[string]int{"b": 1})
	require.ErrorContains(t, err, "database space exceeded")
}

func TestOnlyTheWatchersRequestsCount(t *testing.T) {
	begin := time.Now()
	request := func(user, verb, resource string, code int, after time.Duration) env.AuditedRequest {
		return env.AuditedRequest{User: user, Verb: verb, Resource: resource, Code: code, At: begin.Add(after)}
	}
	assert.Equal(t, asked{Requests: 6, Lists: 1, Writes: 1, Clocked: 2}, countAsked([]env.AuditedRequest{
		request(env.HoldfastWatcher, "list", "backups", 200, -time.Second),
		request(env.HoldfastWorker, "list", "backups", 200, time.Second),
		request(env.HoldfastWatcher, "list", "backups", 200, time.Second),
		request(env.HoldfastWatcher, "get", "configmaps", 404, time.Second),
		request(env.HoldfastWatcher, "patch", "nonadminbackups", 200, time.Second),
		request(env.HoldfastWatcher, "patch", "nonadminbackups", 409, time.Second),
		request(env.HoldfastWatcher, "create", "events", 201, time.Second),
		request(env.HoldfastWatcher, "update", "leases", 200, time.Second),
	}, begin))
}

// All that two watchers do over settled backups is read them.
func TestWatchersRestOverACrowd(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real components (-short)")
	}
	sample.InLong(t, "TestABackupCostsNoMoreThanPromised") // whose watchers rest between the bursts
	report, err := measureCrowd(t.Context(), crowd{ordinary: 40, namespaces: 4, watchers: 2, rest: 5 * time.Second})
	require.NoError(t, err)
	report.print(t.Output())
	require.Len(t, report.Watchers, 2)
	for _, watcher := range report.Watchers {
		assert.Positive(t, watcher.After.PeakMiB)
	}
	assert.Positive(t, report.Start.Lists)
	assert.Positive(t, report.After.Clocked)
	assert.Zero(t, report.After.Writes)
}

func TestAHostileCrowdIsChecked(t *testing.T) {
	require.NoError(t, crowd{watchers: 1, namespaces: 1}.check())
	require.ErrorContains(t, crowd{}.check(), "-hostile-watchers")
	require.ErrorContains(t, crowd{watchers: 1, namespaces: 1, large: -1}.check(), "at least 0")
	require.ErrorContains(t, run(t.Context(), plan{profile: "other"}, ""), "-profile")
}

func TestBusyLoopsEnd(t *testing.T) {
	stop, err := startBusyLoops(t.Context(), 2)
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		stop()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the busy loops go on")
	}
}
