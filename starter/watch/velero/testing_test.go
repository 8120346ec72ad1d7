package velero

import (
	"testing"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/starter/watch/watchtest"
)

const name = "nightly"

var (
	errAway = watchtest.ErrAway
	request = watchtest.Request
	atOnce  = watchtest.AtOnce
)

type (
	// Request is short for what is asked.
	Request        = controllers.Request
	events         = controllers.Events
	queue          = controllers.Queue
	added          = watchtest.Added
	recordingQueue = watchtest.Queue
)

func edited[T client.Object](object T, change func(T)) T { return watchtest.Edited(object, change) }

// station is the kinds without a cluster: the cache is a world in memory.
type station struct {
	env       *Env
	backups   *backups
	restores  *restores
	downloads *downloads
	locations *locations
	plans     *plans
	cache     *fake.World
	signals   *watchtest.Signals
	policy    *watchtest.Policy
	turns     *recordedTurns
	paused    error
	now       time.Time // what download requests are judged by
	// positionsDue: the queue positions are to be computed again.
	positions bool
	// defaults counts how often default plans were to be compared.
	defaults int
}

func newStation(t *testing.T, objects ...client.Object) *station {
	t.Helper()
	s := &station{
		cache: fake.New(t, objects...), signals: &watchtest.Signals{}, policy: &watchtest.Policy{}, turns: &recordedTurns{},
		now: fake.DownloadTime,
	}
	s.env = &Env{
		Env:    watchtest.Env(fake.Cluster, fake.OADPNamespace, s.cache.Client, s.signals),
		Policy: s.policy, PositionsChanged: func() { s.positions = true }, DefaultPlansChanged: func() { s.defaults++ },
		Turns: s.turns,
	}
	s.env.Paused = func() error { return s.paused }
	s.backups, s.restores, s.downloads, s.locations = newBackups(s.env), newRestores(s.env), newDownloads(s.env), newLocations(s.env)
	s.plans = newPlans(s.env)
	s.downloads.now = func() time.Time { return s.now }
	return s
}

// positionsDue reports, once, whether the queue positions are to be computed again.
func (s *station) positionsDue() bool {
	due := s.positions
	s.positions = false
	return due
}

// tracked returns a NonAdminBackup that is created, and the Velero Backup that was made for it.
func tracked(name string, phase velerov1.BackupPhase) (*oadpv1alpha1.NonAdminBackup, *velerov1.Backup) {
	return watchtest.Tracked(fake.NAB(name), fake.VeleroName(name), fake.OADPNamespace, phase)
}

// keptBack returns a NonAdminBackup in BackingOff, for its spec.
func keptBack(name string) *oadpv1alpha1.NonAdminBackup { return watchtest.KeptBack(fake.NAB(name)) }
