package ledger_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/k8s/ledger"
)

func newLedger(t *testing.T, objects ...client.Object) (*ledger.Ledger, *fake.World) {
	t.Helper()
	world := fake.New(t, objects...)
	return &ledger.Ledger{Client: world.Client, OADPNamespace: fake.OADPNamespace}, world
}

var entry = ledger.Entry{
	Namespace: "shop", Name: "nightly", Location: "default", Reason: ledger.ByForce,
	At: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
}

func TestAnEntryIsWrittenOnce(t *testing.T) {
	l, world := newLedger(t)
	for range 2 {
		require.NoError(t, l.Add(t.Context(), "one", entry))
	}
	require.NoError(t, l.Add(t.Context(), "two", entry))
	entries, err := l.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]ledger.Entry{"one": entry, "two": entry}, entries)
	assert.Equal(t, []string{"create ConfigMap", "patch ConfigMap"}, world.Writes())
}

func TestManyWriteAtATime(t *testing.T) {
	l, _ := newLedger(t)
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() { assert.NoError(t, l.Add(t.Context(), fmt.Sprintf("n%d", i), entry)) })
	}
	group.Wait()
	entries, err := l.Read(t.Context())
	require.NoError(t, err)
	assert.Len(t, entries, 20)
}

func TestAFullPartIsFollowedByAnother(t *testing.T) {
	full := part(ledger.ConfigMapName, map[string]string{"old": strings.Repeat("x", 600<<10)})
	l, world := newLedger(t, full)
	require.NoError(t, l.Add(t.Context(), "one", entry))
	require.NoError(t, l.Add(t.Context(), "two", entry))
	assert.Equal(t, []string{"create ConfigMap", "patch ConfigMap"}, world.Writes())
	entries, err := l.Read(t.Context())
	require.NoError(t, err)
	assert.Len(t, entries, 3)
	assert.Equal(t, ledger.Entry{}, entries["old"], "what an administrator wrote")
}

func TestEntriesAreRemoved(t *testing.T) {
	l, _ := newLedger(t, part(ledger.ConfigMapName, map[string]string{"a": "{}", "b": "{}"}),
		part(ledger.ConfigMapName+"-2", map[string]string{"c": "{}"}))
	removed, err := l.Remove(t.Context(), map[string]bool{"a": true, "c": true, "unknown": true})
	require.NoError(t, err)
	assert.Equal(t, 2, removed)
	entries, err := l.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]ledger.Entry{"b": {}}, entries)
}

// A ConfigMap of that name that somebody has made by hand becomes part of it.
func TestAConfigMapThatIsThereIsTakenIn(t *testing.T) {
	byHand := part(ledger.ConfigMapName, map[string]string{"by-hand": "no"})
	byHand.Labels = nil
	l, _ := newLedger(t, byHand)
	require.NoError(t, l.Add(t.Context(), "one", entry))
	entries, err := l.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]ledger.Entry{"by-hand": {}, "one": entry}, entries)
}

func TestAnAPIServerThatIsAwayIsAnError(t *testing.T) {
	l, world := newLedger(t)
	world.Fail(func(string, client.Object) error { return fake.ErrAway })
	require.ErrorIs(t, l.Add(t.Context(), "one", entry), fake.ErrAway)
}

func part(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: name, Labels: map[string]string{ledger.Label: "true"}},
		Data:       data,
	}
}
