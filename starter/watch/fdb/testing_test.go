package fdb

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
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
	backups  *backups
	restores *restores
	expiries *expiries
	drills   *drills
	cache    *fake.World
	signals  *watchtest.Signals
}

func newStation(t *testing.T, objects ...client.Object) *station {
	t.Helper()
	s := &station{cache: fake.New(t, objects...), signals: &watchtest.Signals{}}
	env := watchtest.Env(fake.Cluster, fake.OADPNamespace, s.cache.Client, s.signals)
	s.backups, s.restores, s.expiries = newBackups(env, nil), newRestores(env, nil), newExpiries(env)
	s.drills = newDrills(env)
	s.backups.clusters = s.cache.Client
	return s
}
