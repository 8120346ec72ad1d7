package leader

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	// LeaseName is the Lease in the OADP namespace that the leading watcher holds.
	LeaseName = "holdfast-watcher"
	// The defaults of Kubernetes' own components: another watcher leads within leaseDuration after a leader was killed.
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	leaseRetry    = 2 * time.Second
)

// NewLease returns the lock that watchers of an OADP namespace elect their leader by.
func NewLease(config *rest.Config, oadpNamespace string) (resourcelock.Interface, error) {
	config = rest.CopyConfig(config)
	config.Timeout = renewDeadline / 2 // a request to an API server that hangs is retried
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create the client of Leases: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this watcher: %w", err)
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: oadpNamespace, Name: LeaseName},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + uuid.NewString()},
	}, nil
}

// Election is one watcher's part in the election of the leader.
type Election struct {
	// Lease is the lock by which watchers elect a leader; a watcher without one leads.
	Lease resourcelock.Interface
	// Refused is called with the API server's errors: without rights to its Lease no watcher ever leads.
	Refused func(error)
	Log     *zap.Logger
	// Led is what the leader does until its context ends.
	Led func(ctx context.Context)

	sighting atomic.Pointer[sighting]
}

// sighting is what was last read of another watcher's lease.
type sighting struct {
	holder  string
	renewed metav1.Time // by the holder's clock
	// seen is when it was noticed that the holder had renewed the lease, by this watcher's clock; long ago if never.
	seen time.Time
}

// Follows reports whether another watcher leads: it was seen to renew its lease within renewDeadline. A lease that is only there
// may be that of a dead watcher. Times by different clocks are not compared.
func (e *Election) Follows() bool {
	last := e.sighting.Load()
	return last != nil && time.Since(last.seen) < renewDeadline
}

// see notes the lease as it was read. A watcher that leads does not read it.
func (e *Election) see(record *resourcelock.LeaderElectionRecord) {
	if record.HolderIdentity == "" || record.HolderIdentity == e.Lease.Identity() {
		e.sighting.Store(nil)
		return
	}
	now := &sighting{holder: record.HolderIdentity, renewed: record.RenewTime}
	if last := e.sighting.Load(); last != nil && last.holder == now.holder {
		now.seen = last.seen
		if !last.renewed.Equal(&now.renewed) {
			now.seen = time.Now()
		}
	}
	e.sighting.Store(now)
}

// noticed is a lock that reports the API server's errors, and what it reads.
type noticed struct {
	resourcelock.Interface
	refused func(error)
	see     func(*resourcelock.LeaderElectionRecord)
}

// Get implements resourcelock.Interface.
func (l noticed) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	l.refused(err)
	if err == nil {
		l.see(record)
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l noticed) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, record)
	l.refused(err)
	return err
}

// Update implements resourcelock.Interface.
func (l noticed) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Update(ctx, record)
	l.refused(err)
	return err
}

// Run runs Led while this watcher leads. That a signal is sent does not depend on the lease, only when. A lost lease does not
// end the process: the manager's own election would end it, and after each outage of the API server the caches would have to be
// filled again. A leader that notices the loss late does no harm: a patch of positions is bound to the object read, and two
// watchers may keep Schedules.
func (e *Election) Run(ctx context.Context) error {
	if e.Lease == nil {
		e.Led(ctx)
		return nil
	}
	for ctx.Err() == nil {
		if err := e.once(ctx); err != nil {
			return err
		}
	}
	return nil
}

// once waits for the lease, and returns when it is lost and Led has ended.
func (e *Election) once(ctx context.Context) error {
	terms, over := make(chan context.Context, 1), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: noticed{Interface: e.Lease, refused: e.Refused, see: e.see}, Name: LeaseName, ReleaseOnCancel: true,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: leaseRetry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(term context.Context) { terms <- term },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("elect a leader of the watchers: %w", err)
	}
	go func() {
		defer close(over)
		elector.Run(ctx)
	}()
	select {
	case term := <-terms:
		e.sighting.Store(nil)
		e.Log.Info("leading", zap.String("identity", e.Lease.Identity()))
		e.Led(term) //nolint:contextcheck // it ends with ctx, and with the lease
		e.Log.Info("not leading any more")
		<-over
	case <-over:
	}
	return nil
}
