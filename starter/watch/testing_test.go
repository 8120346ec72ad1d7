package watch

import (
	"context"
	"errors"
	"testing"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/starter/watch/watchtest"
	"holdfast.dev/holdfast/workflows/contract"
)

const name = "nightly"

var (
	errAway    = watchtest.ErrAway
	request    = watchtest.Request
	errNoRight = apierrors.NewForbidden(
		oadpv1alpha1.Resource(oadpv1alpha1.ResourceNonAdminBackups), "", errors.New("no right to watch"))
)

// station is a Watcher without a cluster: the cache is a world in memory.
type station struct {
	*Watcher
	cache     *fake.World
	signals   *watchtest.Signals
	written   *watchtest.Policy
	informers *informers
}

func newStation(t *testing.T, objects ...client.Object) *station {
	return newStationOf(t, true, objects...)
}

func newStationOf(t *testing.T, foundationDB bool, objects ...client.Object) *station {
	t.Helper()
	s := &station{
		cache: fake.New(t, objects...), signals: &watchtest.Signals{}, written: &watchtest.Policy{}, informers: &informers{},
	}
	s.Watcher = newWatcher(s.cache.Client, nil, Options{
		ClusterID: fake.Cluster, OADPNamespace: fake.OADPNamespace,
		ProgressInterval: 15 * time.Second, ResyncInterval: 5 * time.Minute, FoundationDB: foundationDB,
		Workflows: s.signals, Turns: noTurns{}, Policy: s.written, Paused: func() error { return nil },
		Refusals: &caches.Refusals{}, Log: zap.NewNop(),
	})
	s.caches = s.informers
	return s
}

// noTurns is the queue before Velero without objects.
type noTurns struct{}

func (noTurns) Signal(context.Context, contract.TurnNews, bool) error { return nil }

func (noTurns) Order(context.Context) (contract.TurnOrder, error) { return contract.TurnOrder{}, nil }

// asked are the requests for NonAdminBackups.
func (s *station) asked() []controllers.Request {
	return s.kinds[0].(*controllers.Kind[*oadpv1alpha1.NonAdminBackup]).Requested()
}

// informers notes the kinds whose cache was asked for; err refuses it.
type informers struct {
	cache.Cache
	asked []client.Object
	err   error
}

// GetInformer implements cache.Informers.
func (i *informers) GetInformer(_ context.Context, kind client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	i.asked = append(i.asked, kind)
	return nil, i.err
}

// tracked returns a NonAdminBackup that is created, and the Velero Backup that was made for it.
func tracked(name string, phase velerov1.BackupPhase) (*oadpv1alpha1.NonAdminBackup, *velerov1.Backup) {
	return watchtest.Tracked(fake.NAB(name), fake.VeleroName(name), fake.OADPNamespace, phase)
}

// keptBack returns a NonAdminBackup in BackingOff, for its spec.
func keptBack(name string) *oadpv1alpha1.NonAdminBackup { return watchtest.KeptBack(fake.NAB(name)) }
