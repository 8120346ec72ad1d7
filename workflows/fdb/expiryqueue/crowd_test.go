package expiryqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/activities/fdb/expiry"
	"holdfast.dev/holdfast/activities/fdb/jobs"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

// payloadLimit is the limit of Temporal for one payload; it warns from a quarter of it.
const (
	payloadLimit = 2 << 20
	payloadWarns = payloadLimit / 4
)

// crowdWorld has more FoundationDBBackups than a queue can carry.
type crowdWorld struct {
	mu      sync.Mutex
	start   time.Time
	objects []fdbv1alpha1.FoundationDBBackup // in the order of their creation
	at      map[contract.ObjectRef]int
	finds   *expiry.Activities
	env     *testsuite.TestWorkflowEnvironment
	from    time.Duration
	running []contract.FDBExpiryInput
	begun   []contract.ObjectRef
	sizes   map[string]int // of the largest payloads, in bytes
	found   int
	at30    map[int]func() // called half a minute after so many minutes
	silent  map[contract.ObjectRef]bool
	// away: the API server does not answer; listed is what it returned before that.
	away   error
	listed *contract.FDBExpiriesFound
}

// newCrowdWorld creates them: one tenant has two fifths of all, many have fifty, and more than a queue can name have one.
func newCrowdWorld(t *testing.T) *crowdWorld {
	t.Helper()
	w := &crowdWorld{
		start: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC), at: map[contract.ObjectRef]int{}, sizes: map[string]int{},
		at30: map[int]func(){}, silent: map[contract.ObjectRef]bool{},
	}
	add := func(namespace string) {
		number := len(w.objects)
		object := fdbv1alpha1.FoundationDBBackup{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("nightly-of-database-%05d", number),
			UID:               types.UID(fmt.Sprintf("%08d-0000-4000-8000-%012d", number, number)),
			CreationTimestamp: metav1.NewTime(w.start.Add(time.Duration(number-100_000) * time.Second)),
		}}
		object.Spec.Expiry.MaxRetention = "720h"
		w.at[refOf(&object)] = number
		w.objects = append(w.objects, object)
	}
	for n := range 20_000 {
		add("huge-tenant")
		if n%4 == 0 {
			add("tenant-with-one-" + strconv.Itoa(n))
		}
		add("tenant-with-many-" + strconv.Itoa(n%500))
		if n%4 == 1 {
			add("tenant-with-many-" + strconv.Itoa(n%500))
		}
	}
	scheme := runtime.NewScheme()
	require.NoError(t, fdbv1alpha1.AddToScheme(scheme))
	pages := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{List: w.list})
	w.finds = &expiry.Activities{Client: pages, Now: func() time.Time { return w.start }}
	return w
}

func refOf(object *fdbv1alpha1.FoundationDBBackup) contract.ObjectRef {
	return contract.ObjectRef{Namespace: object.Namespace, Name: object.Name, UID: string(object.UID)}
}

// list answers page by page, as the API server does. There are no pods.
func (w *crowdWorld) list(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	into, is := list.(*fdbv1alpha1.FoundationDBBackupList)
	if !is {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	want := (&client.ListOptions{}).ApplyOptions(options)
	from, _ := strconv.Atoi(want.Continue)
	to := min(from+int(want.Limit), len(w.objects))
	into.Items, into.Continue = slices.Clone(w.objects[from:to]), ""
	if to < len(w.objects) {
		into.Continue = strconv.Itoa(to)
	}
	return nil
}

func (w *crowdWorld) measure(what string, payload any) {
	data, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	w.sizes[what] = max(w.sizes[what], len(data))
}

func (w *crowdWorld) find(ctx context.Context, in contract.FDBExpiryQueueInput) (contract.FDBExpiriesFound, error) {
	found, err := w.finds.Find(ctx, in)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.away != nil:
		if w.listed == nil {
			w.listed = &found
		}
		return contract.FDBExpiriesFound{}, w.away
	case w.listed != nil: // that listing ends now
		found, w.listed = *w.listed, nil
	}
	w.found++
	w.measure("sent to the listing", in)
	w.measure("returned by the listing", found)
	return found, err
}

func (w *crowdWorld) begin(_ context.Context, in contract.FDBExpiryInput) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running, w.begun = append(w.running, in), append(w.begun, in.Ref)
	return nil
}

// finish ends all turns that run: their objects say so, and then the turns.
func (w *crowdWorld) finish() {
	w.mu.Lock()
	running := w.running
	w.running = nil
	for _, turn := range running {
		object := &w.objects[w.at[turn.Ref]]
		object.Status.Expiry = &fdbv1alpha1.BackupExpiryStatus{Turn: turn.Turn}
		if turn.Job == contract.FDBJobDelete {
			object.Finalizers = nil
		}
	}
	w.mu.Unlock()
	for _, turn := range running {
		if w.env.IsWorkflowCompleted() {
			return
		}
		w.env.SignalWorkflow(contract.SignalExpiryTurn,
			contract.FDBTurnReport{Ref: turn.Ref, Turn: turn.Turn, Ended: true, Outcome: contract.FDBTurnDone})
	}
}

// asks sends the queue what an object wants.
func (w *crowdWorld) asks(n int) {
	ref := refOf(&w.objects[n])
	if w.silent[ref] {
		return
	}
	entry, _ := jobs.Entry(&w.objects[n])
	w.env.SignalWorkflow(contract.SignalExpiryEntry, contract.FDBQueueRequest{Cluster: "west", Ref: ref, Job: entry.Job})
}

// deletes marks an object as being deleted.
func (w *crowdWorld) deletes(n int) contract.ObjectRef {
	w.mu.Lock()
	now := metav1.NewTime(w.start)
	w.objects[n].DeletionTimestamp, w.objects[n].Finalizers = &now, []string{fdbv1alpha1.FinalizerDelete}
	w.mu.Unlock()
	w.asks(n)
	return refOf(&w.objects[n])
}

// update sends an Update, whose answer is noted by the backup's name.
func (w *crowdWorld) update(update string, name contract.FDBQueueName, answers map[string]string) {
	w.env.UpdateWorkflow(update, update+name.Name, &testsuite.TestUpdateCallback{
		OnReject: func(err error) { answers[name.Name] = "refused: " + err.Error() }, OnAccept: func() {},
		OnComplete: func(answer any, err error) { answers[name.Name] = fmt.Sprint(answer, err) },
	}, name)
}

// firsts returns the first of each namespace: in that order they have their turns.
func (w *crowdWorld) firsts() (firsts []contract.ObjectRef) {
	had := map[string]bool{}
	for i := range w.objects {
		if ref := refOf(&w.objects[i]); !had[ref.Namespace] {
			had[ref.Namespace] = true
			firsts = append(firsts, ref)
		}
	}
	return firsts
}

// run runs the queue for so many minutes, and returns what it carries over. Each minute every object that has changed asks, and some
// others, as they do every hour.
func (w *crowdWorld) run(t *testing.T, in contract.FDBExpiryQueueInput, minutes int, ends func()) *contract.FDBExpiryQueueInput {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := environment.New(suite)
	env.SetTestTimeout(5 * time.Minute)
	workflows.Register(env, call.Options{FDBExpiryLimit: 100})
	env.RegisterActivityWithOptions(w.find, activity.RegisterOptions{Name: contract.FindFDBExpiries.Name})
	env.RegisterActivityWithOptions(w.begin, activity.RegisterOptions{Name: contract.StartFDBExpiry.Name})
	env.RegisterActivityWithOptions(func(context.Context, contract.Workflows) (contract.Workflows, error) {
		return contract.Workflows{}, nil
	}, activity.RegisterOptions{Name: contract.DescribeWorkflows.Name})
	env.SetStartTime(w.start.Add(w.from))
	w.env = env
	for minute := 1; minute <= minutes; minute++ {
		env.RegisterDelayedCallback(func() {
			for n := minute; n < len(w.objects); n += 997 {
				w.asks(n)
			}
			w.finish()
		}, time.Duration(minute)*time.Minute)
	}
	for minute, do := range w.at30 {
		env.RegisterDelayedCallback(do, time.Duration(minute)*time.Minute+30*time.Second)
	}
	env.RegisterDelayedCallback(ends, time.Duration(minutes)*time.Minute+30*time.Second)
	env.ExecuteWorkflow(contract.KindFDBExpiryQueue.Workflow, in)
	w.from = env.Now().Sub(w.start)
	err := env.GetWorkflowError()
	var again *workflow.ContinueAsNewError
	if errors.As(err, &again) {
		next := &contract.FDBExpiryQueueInput{}
		require.NoError(t, workflowtest.Decode(again, next))
		w.measure("carried over", next)
		return next
	}
	require.True(t, temporal.IsCanceledError(err), err)
	return nil
}

// TestFiftyThousandBackupsHaveTheirTurns: no payload comes near to Temporal's limit, and turns come in the same order as if all were
// carried, also after a continue-as-new under load, and after the queue was terminated.
func TestFiftyThousandBackupsHaveTheirTurns(t *testing.T) {
	w := newCrowdWorld(t)
	require.Len(t, w.objects, 50_000)
	in := &contract.FDBExpiryQueueInput{Cluster: "west"}
	in = w.run(t, *in, 10, func() { w.env.SetContinueAsNewSuggested(true) })
	require.NotNil(t, in)
	require.Nil(t, w.run(t, *in, 7, func() { w.env.CancelWorkflow() }))
	w.finish() // what ran at the end has ended when the next begins
	in = w.run(t, contract.FDBExpiryQueueInput{Cluster: "west"}, 9, func() { w.env.SetContinueAsNewSuggested(true) })
	require.NotNil(t, in)

	want := w.firsts()
	require.Greater(t, len(w.begun), 2500)
	right := 0
	for at, ref := range w.begun {
		if assert.Equal(t, want[at], ref, at) {
			right++
		}
	}
	whole := contract.FDBExpiryQueueInput{Cluster: "west"}
	for i := range w.objects {
		whole.Entries = append(whole.Entries, contract.FDBQueueEntry{Ref: refOf(&w.objects[i]), Job: contract.FDBJobExpire})
	}
	t.Logf("%d turns of %d namespaces in the right order, %d listings of the objects", right, len(want), w.found)
	w.keepsSmall(t)
	w.measure("all", whole)
	t.Logf("carrying all would take %d bytes; the limit is %d", w.sizes["all"], payloadLimit)
}

func (w *crowdWorld) keepsSmall(t *testing.T) {
	t.Helper()
	for _, what := range []string{"carried over", "sent to the listing", "returned by the listing"} {
		t.Logf("largest payload %s: %d bytes", what, w.sizes[what])
		assert.Less(t, w.sizes[what], payloadWarns, what)
	}
}
