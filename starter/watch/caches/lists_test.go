package caches

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

var errAway = errors.New("connection refused")

func ignored(error) {}

// trimmed keeps of a NonAdminBackup the metadata.
var trimmed = Transform([]*Kind{New(Kind{}, func(kept, _ *oadpv1alpha1.NonAdminBackup) {
	kept.Spec.BackupSpec = &velerov1.BackupSpec{}
})})

// oldServer knows no streamed lists: it answers a list that asks for what its cache holds at once, whatever the limit.
type oldServer struct {
	t      *testing.T
	asked  []metav1.ListOptions
	failAt int
}

func (s *oldServer) list(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	s.asked = append(s.asked, options)
	if len(s.asked) == s.failAt {
		return nil, errAway
	}
	require.Empty(s.t, options.ResourceVersion, "with one, the server sends everything at once")
	require.EqualValues(s.t, pageSize, options.Limit)
	large := fake.NAB("page-" + options.Continue)
	large.Spec.BackupSpec = &velerov1.BackupSpec{IncludedResources: []string{strings.Repeat("x", 900_000)}}
	list := &oadpv1alpha1.NonAdminBackupList{Items: []oadpv1alpha1.NonAdminBackup{*large}}
	list.ResourceVersion = "12"
	list.Continue = map[string]string{"": "2", "2": "3", "3": ""}[options.Continue]
	return list, nil
}

func TestAListIsReadAndTrimmedPageByPage(t *testing.T) {
	server := &oldServer{t: t}
	got, err := listTrimmed(t.Context(), server.list, metav1.ListOptions{ResourceVersion: "0", Limit: 500}, trimmed, ignored)
	require.NoError(t, err)
	list := got.(*oadpv1alpha1.NonAdminBackupList)
	require.Len(t, list.Items, 3)
	for i, page := range []string{"page-", "page-2", "page-3"} {
		assert.Equal(t, page, list.Items[i].Name)
		assert.Empty(t, list.Items[i].Spec.BackupSpec.IncludedResources)
	}
	assert.Empty(t, list.Continue, "the caller has all of it")
	assert.Equal(t, "12", list.ResourceVersion)
}

func TestAListThatFailsIsNoShorterList(t *testing.T) {
	server := &oldServer{t: t, failAt: 2}
	_, err := listTrimmed(t.Context(), server.list, metav1.ListOptions{}, trimmed, ignored)
	require.ErrorIs(t, err, errAway)
	server.failAt = 0
	_, err = listTrimmed(t.Context(), server.list, metav1.ListOptions{}, trimmed, ignored)
	require.NoError(t, err, "the next one waits for nothing")
}

func TestOnePageIsReadAtATime(t *testing.T) {
	pages <- struct{}{}
	defer func() { <-pages }()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := listTrimmed(ctx, (&oldServer{t: t}).list, metav1.ListOptions{}, trimmed, ignored)
	require.ErrorIs(t, err, context.Canceled)
}

// A kind whose list fails for ever, for lack of a right or of a webhook, keeps no other kind from its pages.
func TestAListThatIsRetriedKeepsNoOtherFromItsPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		failing := func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, errNoRight }
		var refusals atomic.Int32
		var running sync.WaitGroup
		running.Go(func() {
			_, err := listTrimmed(ctx, failing, metav1.ListOptions{}, trimmed, func(error) { refusals.Add(1) })
			assert.Error(t, err, "it ends with its context")
		})
		synctest.Wait()
		got, err := listTrimmed(ctx, (&oldServer{t: t}).list, metav1.ListOptions{}, trimmed, ignored)
		require.NoError(t, err)
		assert.Len(t, got.(*oadpv1alpha1.NonAdminBackupList).Items, 3)
		time.Sleep(time.Minute)
		assert.Greater(t, refusals.Load(), int32(50), "and it is retried")
		stop()
		running.Wait()
	})
}

// An informer asks a server that cannot stream for pages, and one that can for a stream.
func TestAnInformerReadsPagesWhereListsAreNotStreamed(t *testing.T) {
	server := &oldServer{t: t}
	var streams int
	lists := &toolscache.ListWatch{
		ListWithContextFunc: server.list,
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil {
				streams++
				return nil, errNoStreams
			}
			return watch.NewFake(), nil
		},
	}
	assert.False(t, watchlist.DoesClientNotSupportWatchListSemantics(lists))
	informer := newInformer(trimmed, ignored)(lists, &oadpv1alpha1.NonAdminBackup{}, 0, toolscache.Indexers{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	require.True(t, toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	assert.Len(t, informer.GetStore().List(), 3)
	assert.Len(t, server.asked, 3)
	assert.Equal(t, 1, streams, "a stream is asked for first")
	stop()
	<-ended
}
