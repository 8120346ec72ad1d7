package fdbtools_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/workflows/contract"
)

func TestWhatIsRestoredIsFoundOut(t *testing.T) {
	t.Parallel()
	s := newRestoreScene(t)
	first := s.taken(map[string]string{"a": "1"})
	// Times are told in seconds. The cluster is taken for an hour older, so that its versions go on by as much at once, and that hour
	// lies between the first keys and the second ones.
	s.change(func(c *fdbsimCluster) { c.Created = c.Created.Add(-time.Hour) })
	at := metav1.NewTime(time.Now().UTC().Add(-30 * time.Minute).Truncate(time.Second))
	require.NoError(t, s.sim.Set(s.cluster, map[string]string{"a": "2"}))
	second, err := s.sim.Version(s.cluster)
	require.NoError(t, err)
	s.restorable(second)
	latest := s.look(true).Point
	require.NotNil(t, latest)
	assert.Greater(t, latest.Version, second)

	for title, tt := range map[string]struct {
		version  int64
		at       *metav1.Time
		source   string
		class    contract.FDBClass
		mentions string
	}{
		"a version":             {version: second},
		"a version wins":        {version: second, at: new(metav1.NewTime(time.Unix(1, 0)))},
		"too old a version":     {version: 1, class: contract.FDBClassNotRestorable, mentions: "version 1 cannot be restored: the backup reaches from"},
		"too new a version":     {version: 1 << 60, class: contract.FDBClassNotRestorable, mentions: "cannot be restored"},
		"a time":                {at: &at},
		"a time in the future":  {at: new(metav1.NewTime(time.Now().Add(time.Hour))), class: contract.FDBClassNotRestorable, mentions: "is in the future"},
		"a time before it all":  {at: new(metav1.NewTime(time.Unix(1e9, 0))), class: contract.FDBClassNotRestorable, mentions: "cannot be restored: the backup reaches"},
		"an unknown source":     {at: &at, source: "nowhere", class: contract.FDBClassOther, mentions: `no FoundationDBCluster "nowhere"`},
		"a source not asked":    {version: second, source: "nowhere"},
		"the latest, no source": {source: "nowhere"},
	} {
		t.Run(title, func(t *testing.T) {
			s := *s
			inner := *s.scene
			inner.t, s.scene, s.restore = t, &inner, s.restore.DeepCopy()
			s.restore.Spec.Version, s.restore.Spec.Timestamp = tt.version, tt.at
			if tt.source != "" {
				s.restore.Spec.SourceClusterName = tt.source
			}
			seen := s.look(true)
			if tt.class != "" {
				assert.Nil(t, seen.Point)
				require.NotNil(t, seen.Unresolved)
				assert.Equal(t, tt.class, seen.Unresolved.Class)
				assert.Contains(t, seen.Unresolved.Message, tt.mentions)
				return
			}
			require.NotNil(t, seen.Point, "%+v", seen.Unresolved)
			switch {
			case tt.version != 0:
				assert.Equal(t, tt.version, seen.Point.Version)
			case tt.at != nil:
				assert.Equal(t, at.Unix(), seen.Point.Time)
				assert.Greater(t, seen.Point.Version, first)
				assert.Less(t, seen.Point.Version, second)
			default:
				assert.GreaterOrEqual(t, seen.Point.Version, latest.Version)
			}
		})
	}
	assert.Empty(t, s.told("start"), "the destination was not touched")
}

func TestWhatCannotBeReadIsNotRestored(t *testing.T) {
	for title, tt := range map[string]struct {
		prepare func(*restoreScene)
		class   contract.FDBClass
	}{
		"no container":          {func(*restoreScene) {}, contract.FDBClassMissing},
		"no access":             {func(s *restoreScene) { s.store.deny = true }, contract.FDBClassDenied},
		"the worker's own disk": {func(s *restoreScene) { s.restore.Spec.BackupURL = "file:///etc" }, contract.FDBClassBadURL},
		"another's account": {func(s *restoreScene) {
			s.restore.Spec.BackupURL = strings.Replace(s.url(stamp), "//lab@", "//other@", 1)
		}, contract.FDBClassOther},
	} {
		t.Run(title, func(t *testing.T) {
			s := newRestoreScene(t)
			tt.prepare(s)
			seen := s.look(true)
			require.Nil(t, seen.Failure)
			assert.Nil(t, seen.Point)
			require.NotNil(t, seen.Unresolved)
			assert.Equal(t, tt.class, seen.Unresolved.Class, seen.Unresolved.Message)
		})
	}
}
