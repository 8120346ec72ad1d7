package watchtest

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/workflows/contract"
)

// ErrAway is the error of a server that does not answer.
var ErrAway = errors.New("connection refused")

// Namespace is the tenant's.
const Namespace = "team"

// Env is the environment of kinds.
func Env(cluster, oadpNamespace string, cached client.Client, signals *Signals) *controllers.Env {
	return &controllers.Env{
		ClusterID: cluster, OADPNamespace: oadpNamespace, ProgressInterval: 15 * time.Second, ResyncInterval: 5 * time.Minute,
		Client: cached, Workflows: signals,
		Paused: func() error { return nil }, Log: zap.NewNop(),
	}
}

// Signals records signals and starts.
type Signals struct {
	Sent    []string
	Volumes bool   // from the last signal
	Drill   string // from the last signal
	Err     error
}

// SignalWithStart implements connect.Workflows.
func (s *Signals) SignalWithStart(_ context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Hint) error {
	if s.Err == nil {
		velero, _ := changed.(contract.VeleroChanged)
		s.Volumes, s.Drill = velero.Volumes, velero.Drill
	}
	return s.record("start", kind, ref)
}

// Ensure implements connect.Workflows.
func (s *Signals) Ensure(_ context.Context, kind contract.Kind, ref contract.ObjectRef) error {
	return s.record("ensure", kind, ref)
}

// SignalRunning implements connect.Workflows.
func (s *Signals) SignalRunning(_ context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Hint) error {
	return s.record(changed.Why(), kind, ref)
}

func (s *Signals) record(what string, kind contract.Kind, ref contract.ObjectRef) error {
	if s.Err == nil {
		s.Sent = append(s.Sent, what+" "+kind.ID+" "+ref.String()+" "+ref.UID)
	}
	return s.Err
}

// Policy is a policy that a test writes.
type Policy struct {
	mutex   sync.Mutex
	policy  policy.Policy
	version string
	err     error
	reads   int
}

// Write replaces the policy.
func (p *Policy) Write(version string, written policy.Policy, err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.version, p.policy, p.err = version, written, err
}

// Get returns the policy, or the error that was written.
func (p *Policy) Get(context.Context) (policy.Policy, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.reads++
	return p.policy, p.err
}

// Version is that of the policy written last.
func (p *Policy) Version() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.version
}

// Problem is the error that was written.
func (p *Policy) Problem() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.err == nil {
		return ""
	}
	return p.err.Error()
}

// Reads is how often the policy was read.
func (p *Policy) Reads() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.reads
}

// Added is a request that was put into the workqueue.
type Added struct {
	controllers.Request
	After time.Duration
}

// Queue records what is added and gives nothing away.
type Queue struct {
	controllers.Queue
	Added []Added
}

// Add implements controllers.Queue.
func (q *Queue) Add(request controllers.Request) { q.Added = append(q.Added, Added{Request: request}) }

// AddAfter implements controllers.Queue.
func (q *Queue) AddAfter(request controllers.Request, after time.Duration) {
	q.Added = append(q.Added, Added{request, after})
}

// Request is the request for an object of the tenant.
func Request(name string) controllers.Request {
	return controllers.Request{Namespace: Namespace, Name: name, UID: "uid-" + name}
}

// AtOnce are requests that were added without a delay.
func AtOnce(requests ...controllers.Request) []Added {
	var all []Added
	for _, request := range requests {
		all = append(all, Added{Request: request})
	}
	return all
}

// Edited returns a copy of an object, changed.
func Edited[T client.Object](object T, change func(T)) T {
	after := object.DeepCopyObject().(T)
	after.SetResourceVersion(object.GetResourceVersion() + "1")
	change(after)
	return after
}

// Happens returns what is enqueued for the events of an object: its creation if before is nil, its end if after is.
func Happens(ctx context.Context, events controllers.Events, before, after client.Object) []Added {
	q := &Queue{}
	switch {
	case before == nil:
		events.Create(ctx, event.CreateEvent{Object: after}, q)
	case after == nil:
		events.Delete(ctx, event.DeleteEvent{Object: before}, q)
	default:
		events.Update(ctx, event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
	}
	return q.Added
}
