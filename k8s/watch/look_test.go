package watch

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/api/serviceerror"
	temporal "go.temporal.io/sdk/client"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/contract"
)

const start = "start nab team/nightly uid-nightly"

func TestALookSignalsOnlyWhatIsNotSettled(t *testing.T) {
	later := reconcile.Result{RequeueAfter: 5 * time.Minute}
	force := request(name)
	force.Force = true
	other := request(name)
	other.UID = "uid-of-the-one-before"
	completed, completedBackup := tracked(name, "Completed")
	running, runningBackup := tracked(name, "InProgress")
	lost, _ := tracked(name, "InProgress")
	tests := map[string]struct {
		there   []client.Object
		request Request
		paused  error
		want    []string
		result  reconcile.Result
	}{
		"new":                                  {there: []client.Object{fake.NAB(name)}, request: request(name), want: []string{start}, result: later},
		"at work":                              {there: []client.Object{running, runningBackup}, request: request(name), want: []string{start}, result: later},
		"its Velero Backup lost":               {there: []client.Object{lost}, request: request(name), want: []string{start}, result: later},
		"settled":                              {there: []client.Object{completed, completedBackup}, request: request(name), result: later},
		"kept back, the cause still there":     {there: []client.Object{keptBack(name)}, request: request(name), result: later},
		"gone":                                 {request: request(name), want: []string{"deleted nab team/nightly uid-nightly"}},
		"made anew":                            {there: []client.Object{fake.NAB(name)}, request: other, want: []string{"deleted nab team/nightly uid-of-the-one-before"}},
		"not settled by a live look":           {there: []client.Object{completed, completedBackup}, request: force, want: []string{start}},
		"not in the cache, but in a live look": {request: force, want: []string{start}},
		"another controller serves it":         {there: []client.Object{fake.NAB(name)}, request: request(name), paused: errAway, result: reconcile.Result{RequeueAfter: 10 * time.Second}},
		"gone, and another controller there":   {request: request(name), paused: errAway, result: reconcile.Result{RequeueAfter: 10 * time.Second}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := newStation(t, test.there...)
			s.paused = test.paused
			result, err := s.look(t.Context(), test.request)
			require.NoError(t, err)
			assert.Equal(t, test.want, s.signals.told)
			assert.Equal(t, test.result, result)
		})
	}
}

// The workqueue tries again, for ever and ever more slowly, whatever an error says.
func TestALookThatFailsIsRepeated(t *testing.T) {
	tests := map[string]func(s *station){
		"Temporal is away":          func(s *station) { s.signals.err = errAway },
		"the cache cannot be read":  func(s *station) { s.cache.FailReads(func(runtime.Object) error { return errAway }) },
		"the policy cannot be used": func(s *station) { s.policy.write("", policy.Policy{}, errAway) },
	}
	for title, disturb := range tests {
		t.Run(title, func(t *testing.T) {
			waits, _ := tracked(name, "") // its Velero Backup is lost
			if title == "the policy cannot be used" {
				waits = keptBack(name)
			}
			s := newStation(t, waits)
			disturb(s)
			result, err := s.look(t.Context(), request(name))
			require.ErrorIs(t, err, errAway)
			assert.Zero(t, result, "a result beside an error would be ignored")
			assert.Empty(t, s.signals.told)
		})
	}
	t.Run("Temporal is away when an object has gone", func(t *testing.T) {
		s := newStation(t)
		s.signals.err = errAway
		_, err := s.look(t.Context(), request(name))
		require.ErrorIs(t, err, errAway)
	})
}

// Thousands of objects are judged by the policy as read last, not by a request each.
func TestTheWatcherDoesNotAskForThePolicyPerObject(t *testing.T) {
	s := newStation(t, keptBack("a"), keptBack("b"), keptBack("c"))
	for _, each := range []string{"a", "b", "c", "a"} {
		_, err := s.look(t.Context(), request(each))
		require.NoError(t, err)
	}
	assert.Equal(t, 1, s.policy.reads)
}

func TestTheWatcherIsReadyOnceAllCachesAreFilled(t *testing.T) {
	s := newStation(t)
	require.ErrorIs(t, s.Watching(t.Context()), errNotWatching)
	s.Refusals.note(errNoRight)
	require.ErrorIs(t, s.Watching(t.Context()), errNoRight, "what it waits for")
	manager := s.manager.(*stubManager)
	manager.cacheErr = errAway
	require.ErrorIs(t, s.awaitCaches(t.Context()), errAway)
	require.Error(t, s.Watching(t.Context()))

	manager.cacheErr, manager.cached = nil, nil
	require.NoError(t, s.awaitCaches(t.Context()))
	require.NoError(t, s.Watching(t.Context()))
	assert.Len(t, manager.cached, 20, "every kind that is watched")
}

// The rights and kinds of FoundationDB may not be there.
func TestAWatcherOfVeleroTouchesNothingOfFoundationDB(t *testing.T) {
	s := newStation(t)
	s.FoundationDB, s.fdb = false, nil
	require.NoError(t, s.awaitCaches(t.Context()))
	cached := s.manager.(*stubManager).cached
	assert.Len(t, cached, 16)
	for _, kind := range cached {
		assert.NotContains(t, fmt.Sprintf("%T", kind), "FoundationDB")
		assert.NotContains(t, []string{"*v1.Pod", "*v1.Deployment"}, fmt.Sprintf("%T", kind))
	}
	assert.Nil(t, s.Census().FoundationDB.Backups, "no metric of theirs")
	s.fdb.remindAll(t.Context())
	assert.NoError(t, s.fdb.sweep(t.Context()))
}

func TestTheCacheHoldsOfVelerosObjectsOnlyThoseOfTheOADPNamespace(t *testing.T) {
	options := CacheOptions(fake.OADPNamespace, &Refusals{})
	var kinds []string
	for kind, by := range options.ByObject {
		if _, agents := kind.(*appsv1.Deployment); agents {
			assert.NotNil(t, by.Label, "of all Deployments those of FoundationDB's backup agents")
			continue
		}
		if _, pods := kind.(*corev1.Pod); pods {
			assert.NotNil(t, by.Label, "of all pods those that expire FoundationDB backups")
			continue
		}
		for namespace := range by.Namespaces {
			assert.Equal(t, fake.OADPNamespace, namespace)
		}
		assert.Len(t, by.Namespaces, 1)
		switch kind.(type) {
		case *velerov1.Backup:
			kinds = append(kinds, "Backup")
		case *velerov1.Restore:
			kinds = append(kinds, "Restore")
		case *velerov1.DeleteBackupRequest:
			kinds = append(kinds, "DeleteBackupRequest")
		case *velerov1.BackupStorageLocation:
			kinds = append(kinds, "BackupStorageLocation")
		case *velerov1.DownloadRequest:
			kinds = append(kinds, "DownloadRequest")
		}
	}
	assert.ElementsMatch(t, []string{"Backup", "Restore", "DeleteBackupRequest", "BackupStorageLocation", "DownloadRequest"}, kinds)
	nab := fake.NAB(name)
	nab.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	kept, err := options.DefaultTransform(nab)
	require.NoError(t, err)
	assert.Empty(t, kept.(*oadpv1alpha1.NonAdminBackup).ManagedFields)
}

// stubTemporal records the one signal that it is sent.
type stubTemporal struct {
	temporal.Client
	err     error
	id      string
	signal  string
	payload any
	options temporal.StartWorkflowOptions
	kind    any
	input   []any
}

// SignalWithStartWorkflow implements client.Client.
func (c *stubTemporal) SignalWithStartWorkflow(
	_ context.Context, id, signal string, payload any, options temporal.StartWorkflowOptions, kind any, input ...any,
) (temporal.WorkflowRun, error) {
	c.id, c.signal, c.payload, c.options, c.kind, c.input = id, signal, payload, options, kind, input
	return nil, c.err
}

// SignalWorkflow implements client.Client.
func (c *stubTemporal) SignalWorkflow(_ context.Context, id, run, signal string, payload any) error {
	c.id, c.signal, c.payload = id+run, signal, payload
	return c.err
}

func TestASignalStartsTheWorkflowThatServesTheObject(t *testing.T) {
	c := &stubTemporal{}
	w := &TemporalWorkflows{Client: c, ClusterID: "west"}
	require.NoError(t, w.SignalWithStart(t.Context(), contract.KindBackup, fake.Ref(name), contract.Changed{Reason: "changed"}))
	assert.Equal(t, "west/nab/team/nightly/uid-nightly", c.id)
	assert.Equal(t, contract.SignalChanged, c.signal)
	assert.Equal(t, contract.Changed{Reason: "changed"}, c.payload)
	assert.Equal(t, contract.WorkflowBackup, c.kind)
	assert.Equal(t, []any{contract.BackupInput{Cluster: "west", Ref: fake.Ref(name)}}, c.input)
	assert.Equal(t, temporal.StartWorkflowOptions{
		TaskQueue:             "holdfast-west",
		WorkflowTaskTimeout:   5 * time.Second,
		TypedSearchAttributes: contract.StartAttributes("west", "NonAdminBackup", fake.Ref(name)),
		StaticSummary:         "Backup of team/nightly",
	}, c.options)

	c.err = errAway
	err := w.SignalWithStart(t.Context(), contract.KindBackup, fake.Ref(name), contract.Changed{Reason: "changed"})
	require.ErrorIs(t, err, errAway)
	assert.ErrorContains(t, err, "signal workflow of NonAdminBackup team/nightly")
}

// The end of an object matters only to a workflow that runs.
func TestTheEndOfAnObjectStartsNoWorkflow(t *testing.T) {
	tests := map[string]struct {
		err     error
		wantErr bool
	}{
		"it runs":           {},
		"it does not run":   {err: serviceerror.NewNotFound("workflow execution already completed")},
		"Temporal is away":  {err: serviceerror.NewUnavailable("no"), wantErr: true},
		"any other error":   {err: errors.New("deadline"), wantErr: true},
		"no such namespace": {err: serviceerror.NewNamespaceNotFound("ns"), wantErr: true},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			c := &stubTemporal{err: test.err}
			w := &TemporalWorkflows{Client: c, ClusterID: "west"}
			err := w.SignalRunning(t.Context(), contract.KindBackup, fake.Ref(name), contract.Changed{Reason: "deleted"})
			assert.Equal(t, "west/nab/team/nightly/uid-nightly", c.id, "whichever run it is")
			assert.Equal(t, contract.Changed{Reason: "deleted"}, c.payload)
			if test.wantErr {
				require.ErrorIs(t, err, test.err)
				return
			}
			require.NoError(t, err)
		})
	}
}
