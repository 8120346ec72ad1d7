package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/backup"
	"holdfast.dev/holdfast/activities/queue"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/watch/caches"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// A request is sent again after this time, in case the queue has lost it.
	requestAgain = 4 * time.Minute
	// Retries of a signal begin and end at these intervals; they never give up.
	newsRetryFirst = 100 * time.Millisecond
	newsRetryCap   = 5 * time.Second
)

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// Turns is the queue before Velero, a workflow.
type Turns interface {
	// Signal signals news. start: the workflow is started if it does not run.
	Signal(ctx context.Context, news contract.TurnNews, start bool) error
	// Order returns who waits, in the order of the turns; nothing if the workflow does not run.
	Order(ctx context.Context) (contract.TurnOrder, error)
}

// News sends the queue before Velero what happens to objects that need turns, many in one signal. Only the leading watcher sends
// anything; what a lost leader has not sent, the next one finds in its cache, and the queue at its next check.
type News struct {
	Turns Turns
	// Client reads the cache.
	Client client.Client
	Log    *zap.Logger

	mutex    sync.Mutex
	leading  bool
	written  policy.Queue
	rules    contract.TurnRules
	requests map[contract.TurnKey]contract.TurnRequest
	order    []contract.TurnKey // of the requests
	sent     map[contract.TurnKey]time.Time
	ended    []contract.TurnKey
	policy   bool // the policy was written
	dirty    chan struct{}
}

// NewNews returns news of nothing.
func NewNews(of *News) *News {
	of.requests, of.sent = map[contract.TurnKey]contract.TurnRequest{}, map[contract.TurnKey]time.Time{}
	of.dirty = make(chan struct{}, 1)
	return of
}

// PolicyWritten notes the policy in force.
func (n *News) PolicyWritten(written policy.Queue, version string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.written, n.rules = written, queue.RulesOf(written)
	n.rules.Version = version
	n.policy = true
	n.wake()
}

// Limited reports whether objects of the pool need turns.
func (n *News) Limited(pool contract.Pool) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.rules.Limits[pool] > 0
}

// Request notes that an object needs a turn.
func (n *News) Request(ctx context.Context, pool contract.Pool, object client.Object) {
	request := contract.TurnRequest{TurnKey: keyOf(pool, object), Created: object.GetCreationTimestamp().Unix()}
	if pool == contract.PoolBackups {
		request.Lane = backup.Lane(object)
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if !n.leading || n.rules.Limits[pool] == 0 || time.Since(n.sent[request.TurnKey]) < requestAgain {
		return
	}
	if len(n.written.Weights) > 0 {
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(namespaceKind)
		if n.Client.Get(ctx, client.ObjectKey{Name: request.Namespace}, namespace) == nil {
			request.Weight = n.written.WeightOf(namespace.Labels)
		}
	}
	if _, known := n.requests[request.TurnKey]; !known {
		n.order = append(n.order, request.TurnKey)
	}
	n.requests[request.TurnKey] = request
	n.sent[request.TurnKey] = time.Now()
	n.wake()
}

func keyOf(pool contract.Pool, object client.Object) contract.TurnKey {
	return contract.TurnKey{Pool: pool, ObjectRef: contract.ObjectRef{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID()),
	}}
}

// NotNeeded notes that an object needs no turn any more, for ever: it is gone, or is to go.
func (n *News) NotNeeded(pool contract.Pool, object client.Object) { n.Ended(keyOf(pool, object)) }

// requestAll requests a turn for each object in the cache that needs one.
func (n *News) requestAll(ctx context.Context) {
	failed := errors.Join(
		caches.Each(ctx, n.Client, &oadpv1alpha1.NonAdminBackup{}, func(object client.Object) {
			nab := object.(*oadpv1alpha1.NonAdminBackup)
			going := !nab.DeletionTimestamp.IsZero() || nab.Spec.DeleteBackup || nab.Spec.ForceDeleteBackup
			if !going && queue.Awaits(nab.Status.Phase, nab.Status.Conditions) {
				n.Request(ctx, contract.PoolBackups, nab)
			}
		}),
		caches.Each(ctx, n.Client, &oadpv1alpha1.NonAdminRestore{}, func(object client.Object) {
			nar := object.(*oadpv1alpha1.NonAdminRestore)
			if nar.DeletionTimestamp.IsZero() && queue.Awaits(nar.Status.Phase, nar.Status.Conditions) {
				n.Request(ctx, contract.PoolRestores, nar)
			}
		}),
	)
	if failed != nil {
		n.Log.Error("list in the cache who needs a turn", zap.Error(failed))
	}
}

// Ended notes that an object needs no turn any more, for ever.
func (n *News) Ended(key contract.TurnKey) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	delete(n.requests, key)
	delete(n.sent, key)
	if n.leading && n.rules.Limits[key.Pool] > 0 {
		n.ended = append(n.ended, key)
		n.wake()
	}
}

func (n *News) wake() {
	select {
	case n.dirty <- struct{}{}:
	default:
	}
}

// Run sends news as long as this watcher leads.
func (n *News) Run(ctx context.Context) {
	n.lead(true)
	defer n.lead(false)
	n.requestAll(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.dirty:
		}
		for {
			news, start := n.take()
			if len(news.Requests)+len(news.Ended) == 0 && news.Policy == "" {
				break
			}
			if !n.send(ctx, news, start) {
				return
			}
		}
	}
}

func (n *News) lead(leads bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.leading = leads
	n.requests, n.order, n.ended = map[contract.TurnKey]contract.TurnRequest{}, nil, nil
	clear(n.sent)
	n.policy = n.rules.Version != ""
	n.wake()
}

// take returns the next news, and whether the policy has turns.
func (n *News) take() (news contract.TurnNews, start bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	start = len(n.rules.Limits) > 0
	if n.policy || start {
		news.Policy = n.rules.Version
	}
	changed := n.policy
	n.policy = false
	room := contract.MaxTurnNews
	ended := min(room, len(n.ended))
	news.Ended, n.ended = n.ended[:ended:ended], n.ended[ended:]
	room -= ended
	for room > 0 && len(n.order) > 0 {
		key := n.order[0]
		n.order = n.order[1:]
		if request, wanted := n.requests[key]; wanted {
			news.Requests = append(news.Requests, request)
			delete(n.requests, key)
			room--
		}
	}
	if !changed && len(news.Ended)+len(news.Requests) == 0 {
		news.Policy = ""
	}
	if len(n.sent) > 10*contract.MaxCarried {
		for key, at := range n.sent {
			if time.Since(at) >= requestAgain {
				delete(n.sent, key)
			}
		}
	}
	return news, start
}

// send signals until that succeeds, or this watcher leads no more.
func (n *News) send(ctx context.Context, news contract.TurnNews, start bool) bool {
	for pause := newsRetryFirst; ; pause = min(2*pause, newsRetryCap) {
		err := n.Turns.Signal(ctx, news, start)
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			n.Log.Warn("signal the queue before Velero", zap.Error(err))
		}
		if !sleep(ctx, pause) {
			return false
		}
	}
}
