package watch

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/watch/caches"
)

func TestTheWatcherIsReadyOnceAllCachesAreFilled(t *testing.T) {
	s := newStation(t)
	require.ErrorIs(t, s.Watching(t.Context()), errNotWatching)
	s.election.Refused(errNoRight)
	require.ErrorIs(t, s.Watching(t.Context()), errNoRight, "what it waits for")
	s.informers.err = errAway
	require.ErrorIs(t, s.awaitCaches(t.Context()), errAway)
	require.Error(t, s.Watching(t.Context()))

	s.informers.err, s.informers.asked = nil, nil
	require.NoError(t, s.awaitCaches(t.Context()))
	require.NoError(t, s.Watching(t.Context()))
	for _, kind := range s.kinds {
		for _, watched := range kind.Watched() {
			assert.Contains(t, s.informers.asked, watched.Object)
		}
	}
	assert.Len(t, s.informers.asked, len(watchedBy(s.kinds)), "each once")
}

// A leader that signals nothing yet would only have the other watcher be late.
func TestAWatcherStandsForElectionOnceAllCachesAreFilled(t *testing.T) {
	s := newStation(t)
	led := false
	s.election.Led = func(context.Context) { led = true }
	s.informers.err = errAway
	require.ErrorIs(t, s.stand(t.Context()), errAway)
	assert.False(t, led)
	s.informers.err = nil
	require.NoError(t, s.stand(t.Context()))
	assert.True(t, led)
}

// The rights and kinds of FoundationDB may not be there.
func TestAWatcherOfVeleroTouchesNothingOfFoundationDB(t *testing.T) {
	s := newStationOf(t, false)
	require.NoError(t, s.awaitCaches(t.Context()))
	cached := s.informers.asked
	assert.NotEmpty(t, cached)
	for _, kind := range cached {
		assert.NotContains(t, fmt.Sprintf("%T", kind), "FoundationDB")
		assert.NotContains(t, []string{"*v1.Pod", "*v1.Deployment"}, fmt.Sprintf("%T", kind))
	}
	assert.Nil(t, s.Census().FoundationDB.Backups, "no metric of theirs")
}

func TestTheCacheHoldsOfVelerosObjectsOnlyThoseOfTheOADPNamespace(t *testing.T) {
	s, options := newStation(t), CacheOptions(fake.OADPNamespace, &caches.Refusals{})
	for _, kind := range watchedBy(s.kinds) {
		gvk, err := apiutil.GVKForObject(kind.Object, s.cache.Client.Scheme())
		require.NoError(t, err)
		by, limited := options.ByObject[kind.Object]
		switch made := gvk.Group == velerov1.SchemeGroupVersion.Group || strings.HasSuffix(gvk.Kind, "ApprovalRequest"); {
		case made:
			assert.Equal(t, map[string]cache.Config{fake.OADPNamespace: {}}, by.Namespaces, gvk.Kind)
		case gvk.Kind == "Deployment" || gvk.Kind == "Pod":
			assert.NotNil(t, by.Label, "of all %ss those that FoundationDB's backups own", gvk.Kind)
		default:
			assert.False(t, limited, gvk.Kind)
		}
	}
	nab := fake.NAB(name)
	nab.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	kept, err := options.DefaultTransform(nab)
	require.NoError(t, err)
	assert.Empty(t, kept.(*oadpv1alpha1.NonAdminBackup).ManagedFields)
}
