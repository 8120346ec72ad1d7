package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/queue"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// A request is sent again after this time, in case the queue has lost it.
	requestAgain = 4 * time.Minute
	// Under load signals come newsPace apart, so that each says more; after a pause newsAtOnce of them go at once. An end waits that
	// long for others: a request does not.
	newsPace   = 200 * time.Millisecond
	newsAtOnce = 3
	// Retries of a signal begin and end at these intervals; they never give up.
	newsRetryFirst = 100 * time.Millisecond
	newsRetryCap   = 5 * time.Second
)

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// Turns is the queue before Velero, a workflow.
type Turns interface {
	// Signal signals news. start: the workflow is started if it does not run.
	Signal(ctx context.Context, news contract.TurnNews, start bool) error
	// Order returns who waits, in the order of the turns, or connect.ErrNotRunning: then nobody gives turns.
	Order(ctx context.Context) (contract.TurnOrder, error)
}

// News sends the queue before Velero what happens to objects that need turns, many in one signal. Only the leading watcher sends
// anything. Of what a lost leader has not sent, the next one finds the requests in its cache, and the queue the ends in the
// objects.
//
// A workqueue of client-go hands out one key at a time: its keys would have to be gathered here, and put back after an error.
type News struct {
	Turns Turns
	// Client reads the cache.
	Client    client.Client
	ClusterID string
	Log       *zap.Logger

	mutex    sync.Mutex
	leading  bool
	written  policy.Queue
	rules    contract.TurnRules
	requests map[contract.TurnKey]contract.TurnRequest
	order    []contract.TurnKey // of the requests
	sent     map[contract.TurnKey]time.Time
	ended    []contract.TurnKey
	gone     []contract.TurnKey
	ends     map[contract.Pool][]time.Time // those of the last second
	says     map[contract.Pool][]time.Time // of those that have started to say that they wait, in the last second
	policy   bool                          // the policy was written
	began    bool                          // this watcher leads, and the queue does not know yet
	dirty    chan struct{}
}

// NewNews returns news of nothing.
func NewNews(of *News) *News {
	of.requests, of.sent = map[contract.TurnKey]contract.TurnRequest{}, map[contract.TurnKey]time.Time{}
	of.ends, of.says = map[contract.Pool][]time.Time{}, map[contract.Pool][]time.Time{}
	of.dirty = make(chan struct{}, 1)
	return of
}

// PolicyWritten notes the policy in force.
func (n *News) PolicyWritten(written policy.Queue, version string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	limited := len(n.rules.Limits) > 0
	n.written, n.rules = written, queue.RulesOf(written)
	n.rules.Version = version
	n.policy = n.policy || limited || len(n.rules.Limits) > 0 // else there is no queue that wants to know
	wake(n.dirty)
}

// Limited reports whether objects of the pool need turns.
func (n *News) Limited(pool contract.Pool) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.rules.Limits[pool] > 0
}

// BeganToWait requests a turn for an object that waits since now. It may have requested one before that it could not use.
func (n *News) BeganToWait(ctx context.Context, pool contract.Pool, object client.Object) {
	n.mutex.Lock()
	delete(n.sent, keyOf(pool, object))
	n.mutex.Unlock()
	n.Request(ctx, pool, object)
}

// Request notes that an object needs a turn. One that says so needs it, although the policy may have no limit here: workers keep
// one that somebody has removed until they restart.
func (n *News) Request(ctx context.Context, pool contract.Pool, object client.Object) {
	request := contract.TurnRequest{TurnKey: keyOf(pool, object), Created: object.GetCreationTimestamp().Unix()}
	switch {
	case request.Drill:
		request.Lane = contract.LaneDrill
	case pool == contract.PoolBackups:
		request.Lane = queue.Lane(object)
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	needs := n.rules.Limits[pool] > 0 || k8s.WaitsForTurn(k8s.Conditions(object)) || request.Drill
	if !n.leading || !needs || time.Since(n.sent[request.TurnKey]) < requestAgain {
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
	wake(n.dirty)
}

func keyOf(pool contract.Pool, object client.Object) contract.TurnKey {
	_, drill := object.(*holdfastv1alpha1.RestoreDrill)
	return contract.TurnKey{Pool: pool, Drill: drill, ObjectRef: contract.ObjectRef{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID()),
	}}
}

// requestAll requests a turn for each object in the cache that needs one.
func (n *News) requestAll(ctx context.Context) {
	var failed error
	request := func(pool contract.Pool, of client.Object) {
		failed = errors.Join(failed, caches.Each(ctx, n.Client, of, func(object client.Object) {
			if queue.Awaits(object, n.ClusterID) {
				n.Request(ctx, pool, object)
			}
		}))
	}
	for _, of := range kinds {
		request(of.pool, of.object)
	}
	request(contract.PoolRestores, &holdfastv1alpha1.RestoreDrill{})
	if failed != nil {
		n.Log.Error("list in the cache who needs a turn", zap.Error(failed))
	}
}

// NotNeeded notes that an object needs no turn any more, for ever: Velero has finished or stalls.
func (n *News) NotNeeded(pool contract.Pool, object client.Object) {
	key := keyOf(pool, object)
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.forget(key.Pool)
	n.ends[key.Pool] = append(n.ends[key.Pool], time.Now())
	if n.settles(key) {
		n.ended = append(n.ended, key)
		wake(n.dirty)
	}
}

// Gone notes that an object was deleted. If it has a turn, its workflow gives that back, or the queue's census finds that it has
// ended.
func (n *News) Gone(pool contract.Pool, object client.Object) {
	key := keyOf(pool, object)
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.settles(key) {
		n.gone = append(n.gone, key)
		wake(n.dirty)
	}
}

// settles forgets the request of an object, and reports whether the queue is to know what has become of it.
func (n *News) settles(key contract.TurnKey) bool {
	_, requested := n.sent[key]
	delete(n.requests, key)
	delete(n.sent, key)
	return n.leading && (requested || n.rules.Limits[key.Pool] > 0)
}

// Run sends news as long as this watcher leads.
func (n *News) Run(ctx context.Context) {
	n.lead(true)
	defer n.lead(false)
	n.requestAll(ctx)
	var keeping sync.WaitGroup
	defer keeping.Wait()
	keeping.Go(func() { n.keep(ctx) })
	pace := rate.NewLimiter(rate.Every(newsPace), newsAtOnce)
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.dirty:
		}
		for n.waiting() {
			if !n.gather(ctx) || pace.Wait(ctx) != nil {
				return
			}
			news, start := n.take()
			nothing := len(news.Requests)+len(news.Ended)+len(news.Gone) == 0 && news.Policy == ""
			if !nothing && !n.send(ctx, news, start) {
				return
			}
		}
	}
}

func (n *News) lead(leads bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.leading = leads
	n.requests, n.order, n.ended, n.gone = map[contract.TurnKey]contract.TurnRequest{}, nil, nil, nil
	clear(n.sent)
	n.began = leads
	n.policy = n.rules.Version != "" // once for each time that a watcher leads, also for a queue that the last one has not ended
	wake(n.dirty)
}

// waiting reports whether there are news.
func (n *News) waiting() bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.policy || len(n.ended)+len(n.gone)+len(n.requests) > 0
}

// gather waits for more news if there are ends alone, and reports whether this watcher still leads.
func (n *News) gather(ctx context.Context) bool {
	over := time.After(newsPace)
	for n.onlyEnds() {
		select {
		case <-ctx.Done():
			return false
		case <-over:
			return true
		case <-n.dirty:
		}
	}
	return true
}

func (n *News) onlyEnds() bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return !n.policy && len(n.requests) == 0
}

// take returns the next news, and whether somebody gives turns, or should.
func (n *News) take() (news contract.TurnNews, start bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	start = len(n.rules.Limits)+len(n.requests) > 0
	if n.policy || start {
		news.Policy = n.rules.Version
	}
	changed := n.policy
	n.policy = false
	room := contract.MaxTurnNews
	news.Ended, n.ended = taken(n.ended, room)
	room -= len(news.Ended)
	news.Gone, n.gone = taken(n.gone, room)
	room -= len(news.Gone)
	for room > 0 && len(n.order) > 0 {
		key := n.order[0]
		n.order = n.order[1:]
		if request, wanted := n.requests[key]; wanted {
			news.Requests = append(news.Requests, request)
			delete(n.requests, key)
			room--
		}
	}
	if !changed && len(news.Ended)+len(news.Gone)+len(news.Requests) == 0 {
		news.Policy = ""
	}
	if news.Policy != "" {
		news.Leads, n.began = n.began, false
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

// taken returns the first keys, so many at most, and the others.
func taken(keys []contract.TurnKey, most int) (first, others []contract.TurnKey) {
	count := min(most, len(keys))
	return keys[:count:count], keys[count:]
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
