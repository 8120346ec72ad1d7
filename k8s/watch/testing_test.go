package watch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/backup"
	"holdfast.dev/holdfast/k8s/download"
	"holdfast.dev/holdfast/k8s/location"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/restore"
	"holdfast.dev/holdfast/workflows/contract"
)

const name = "nightly"

var errAway = errors.New("connection refused")

// station is a Watcher without a cluster: the cache and the API server are two worlds in memory, which may differ.
type station struct {
	*Watcher
	cache, live *fake.World
	signals     *signals
	policy      *writtenPolicy
	paused      error
	now         time.Time // what download requests are judged by
}

func newStation(t *testing.T, objects ...client.Object) *station {
	t.Helper()
	s := &station{
		cache: fake.New(t, objects...), live: fake.New(t), signals: &signals{}, policy: &writtenPolicy{},
		now: fake.DownloadTime,
	}
	polled := &polledPolicy{source: s.policy}
	s.Watcher = &Watcher{
		Options: Options{
			ClusterID: fake.Cluster, OADPNamespace: fake.OADPNamespace,
			ProgressInterval: 15 * time.Second, ResyncInterval: 5 * time.Minute, FoundationDB: true,
			Workflows: s.signals, Policy: s.policy, Paused: func() error { return s.paused },
			Refusals: &Refusals{}, Log: zap.NewNop(),
		},
		manager: &stubManager{s: s},
		policy:  polled,
		gatherer: &backup.Gatherer{
			Reader: s.cache.Client, Policy: polled, ClusterID: fake.Cluster, OADPNamespace: fake.OADPNamespace,
		},
		intake: newIntake(),
		dirty:  make(chan struct{}, 1),
	}
	s.restores = &restores{
		Watcher: s.Watcher,
		gatherer: &restore.Gatherer{
			Reader: s.cache.Client, Policy: polled, ClusterID: fake.Cluster, OADPNamespace: fake.OADPNamespace,
		},
		intake: newIntake(),
	}
	s.downloads = &downloads{
		Watcher: s.Watcher,
		gatherer: &download.Gatherer{
			Reader: s.cache.Client, ClusterID: fake.Cluster, OADPNamespace: fake.OADPNamespace,
			Now: func() time.Time { return s.now },
		},
		intake: newIntake(),
	}
	s.locations = &locations{
		Watcher: s.Watcher,
		gatherer: &location.Gatherer{
			Reader: s.cache.Client, Policy: polled, ClusterID: fake.Cluster, OADPNamespace: fake.OADPNamespace,
		},
		intake: newIntake(),
	}
	s.fdb = &foundationDB{}
	s.fdb.backups = &fdbBackups{Watcher: s.Watcher, intake: newIntake(), clusters: s.cache.Client}
	s.fdb.restores = &fdbRestores{Watcher: s.Watcher, intake: newIntake()}
	s.fdb.expiries = &fdbExpiries{Watcher: s.Watcher, intake: newIntake()}
	return s
}

// asked empties the channel to the workqueue.
func (s *station) asked() []Request {
	var requests []Request
	for {
		select {
		case e := <-s.requests:
			requests = append(requests, e.Object)
		default:
			return requests
		}
	}
}

// positionsDue reports, once, whether the queue positions are to be computed again.
func (s *station) positionsDue() bool {
	select {
	case <-s.dirty:
		return true
	default:
		return false
	}
}

type stubManager struct {
	manager.Manager
	s *station
	// cached are the kinds whose cache was asked for; cacheErr refuses it.
	cached   []client.Object
	cacheErr error
}

func (m *stubManager) GetClient() client.Client    { return m.s.cache.Client }
func (m *stubManager) GetAPIReader() client.Reader { return m.s.live.Client }
func (m *stubManager) GetCache() cache.Cache       { return &stubCache{m: m} }

type stubCache struct {
	cache.Cache
	m *stubManager
}

// GetInformer implements cache.Informers.
func (c *stubCache) GetInformer(_ context.Context, kind client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	c.m.cached = append(c.m.cached, kind)
	return nil, c.m.cacheErr
}

// writtenPolicy is a policy that a test writes.
type writtenPolicy struct {
	mutex   sync.Mutex
	policy  policy.Policy
	version string
	err     error
	reads   int
}

func (s *writtenPolicy) write(version string, p policy.Policy, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.version, s.policy, s.err = version, p, err
}

// Get implements backup.PolicySource.
func (s *writtenPolicy) Get(context.Context) (policy.Policy, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.reads++
	return s.policy, s.err
}

// Version implements PolicySource.
func (s *writtenPolicy) Version() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.version
}

// signals records what workflows were told.
type signals struct {
	told    []string
	volumes bool // what the last one said
	err     error
}

// SignalWithStart implements Workflows.
func (s *signals) SignalWithStart(_ context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Changed) error {
	if s.err == nil {
		s.volumes = changed.Volumes
		s.told = append(s.told, "start "+string(kind)+" "+ref.String()+" "+ref.UID)
	}
	return s.err
}

// Ensure implements Workflows.
func (s *signals) Ensure(_ context.Context, kind contract.Kind, ref contract.ObjectRef) error {
	if s.err == nil {
		s.told = append(s.told, "ensure "+string(kind)+" "+ref.String()+" "+ref.UID)
	}
	return s.err
}

// SignalRunning implements Workflows.
func (s *signals) SignalRunning(_ context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Changed) error {
	if s.err == nil {
		s.told = append(s.told, changed.Reason+" "+string(kind)+" "+ref.String()+" "+ref.UID)
	}
	return s.err
}

// added is a request that was put into the workqueue.
type added struct {
	Request
	after time.Duration
}

// recordingQueue records what is added and gives nothing away.
type recordingQueue struct {
	queue
	added []added
}

func (q *recordingQueue) Add(request Request) { q.added = append(q.added, added{Request: request}) }

func (q *recordingQueue) AddAfter(request Request, after time.Duration) {
	q.added = append(q.added, added{request, after})
}

func request(name string) Request {
	return Request{Namespace: fake.Namespace, Name: name, UID: "uid-" + name}
}

func atOnce(requests ...Request) []added {
	var all []added
	for _, request := range requests {
		all = append(all, added{Request: request})
	}
	return all
}

// tracked returns a NonAdminBackup that is created, and the Velero Backup that was made for it.
func tracked(name string, phase velerov1.BackupPhase) (*oadpv1alpha1.NonAdminBackup, *velerov1.Backup) {
	nab := fake.NAB(name)
	nab.Finalizers = []string{oadpv1alpha1.NabFinalizer}
	velero := backup.NewVeleroBackup(nab, fake.VeleroName(name), fake.OADPNamespace, velerov1.BackupSpec{})
	velero.UID = "uid-of-the-backup"
	velero.CreationTimestamp = metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	velero.Status.Phase = phase
	verdict := backup.Verdict{Accepted: true, Reason: "BackupAccepted", Message: "backup accepted"}
	backup.ApplyVerdict(nab, verdict, velero.Name, fake.OADPNamespace)
	backup.ApplyCreated(nab)
	objects := &backup.Objects{NAB: nab, BackupName: velero.Name, Backup: velero}
	backup.ApplyMirror(nab, objects, fake.OADPNamespace)
	return nab, velero
}

// keptBack returns a NonAdminBackup in BackingOff, for its spec.
func keptBack(name string) *oadpv1alpha1.NonAdminBackup {
	nab := fake.NAB(name)
	nab.Spec.BackupSpec.ExcludedNamespaces = []string{"x"}
	backup.ApplyVerdict(nab, backup.Verdict{
		Reason: "InvalidBackupSpec", Message: "NonAdminBackup spec.backupSpec.excludedNamespaces is restricted",
	}, "", "")
	return nab
}

// edited returns a copy of an object, changed.
func edited[T client.Object](object T, change func(T)) T {
	after := object.DeepCopyObject().(T)
	after.SetResourceVersion(object.GetResourceVersion() + "1")
	change(after)
	return after
}
