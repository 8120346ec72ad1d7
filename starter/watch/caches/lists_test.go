package caches

import (
	"cmp"
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
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

// pageServer has three pages of one object. It would answer a list that asks for what its cache holds at once, whatever the limit.
type pageServer struct {
	t       *testing.T
	asked   []metav1.ListOptions
	failAt  int
	failure error // errAway if nil
}

func (s *pageServer) list(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	s.asked = append(s.asked, options)
	if len(s.asked) == s.failAt {
		return nil, cmp.Or(s.failure, errAway)
	}
	require.Empty(s.t, options.ResourceVersion, "with one, the server sends everything at once")
	require.EqualValues(s.t, smallestPage, options.Limit, "pages that are not measured do not grow")
	large := fake.NAB("page-" + options.Continue)
	large.Spec.BackupSpec = &velerov1.BackupSpec{IncludedResources: []string{strings.Repeat("x", 900_000)}}
	list := &oadpv1alpha1.NonAdminBackupList{Items: []oadpv1alpha1.NonAdminBackup{*large}}
	list.ResourceVersion = "12"
	list.Continue = map[string]string{"": "2", "2": "3", "3": ""}[options.Continue]
	return list, nil
}

func TestAListIsReadAndTrimmedPageByPage(t *testing.T) {
	server := &pageServer{t: t}
	got, err := listTrimmed(t.Context(), server.list, metav1.ListOptions{ResourceVersion: "0", Limit: 500}, trimmed, ignored)
	require.NoError(t, err)
	list := got.(*metainternalversion.List)
	require.Len(t, list.Items, 3)
	for i, page := range []string{"page-", "page-2", "page-3"} {
		nab := list.Items[i].(*oadpv1alpha1.NonAdminBackup)
		assert.Equal(t, page, nab.Name)
		assert.Empty(t, nab.Spec.BackupSpec.IncludedResources)
	}
	assert.Empty(t, list.Continue, "the caller has all of it")
	assert.Equal(t, "12", list.ResourceVersion)
}

func TestAListThatFailsIsNoShorterList(t *testing.T) {
	server := &pageServer{t: t, failAt: 2}
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
	_, err := listTrimmed(ctx, (&pageServer{t: t}).list, metav1.ListOptions{}, trimmed, ignored)
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
		got, err := listTrimmed(ctx, (&pageServer{t: t}).list, metav1.ListOptions{}, trimmed, ignored)
		require.NoError(t, err)
		assert.Len(t, got.(*metainternalversion.List).Items, 3)
		time.Sleep(time.Minute)
		assert.Greater(t, refusals.Load(), int32(50), "and it is retried")
		stop()
		running.Wait()
	})
}

// synced is what an informer holds once it has its first list. It runs until the test ends.
func synced(t *testing.T, lists *toolscache.ListWatch) []any {
	t.Helper()
	informer := newInformer(trimmed, ignored)(lists, &oadpv1alpha1.NonAdminBackup{}, 0, toolscache.Indexers{})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	require.True(t, toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	return informer.GetStore().List()
}

func TestAnInformerReadsPages(t *testing.T) {
	server := &pageServer{t: t}
	lists := &toolscache.ListWatch{
		ListWithContextFunc: server.list,
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			assert.Nil(t, options.SendInitialEvents, "no stream")
			return watch.NewFake(), nil
		},
	}
	assert.False(t, watchlist.DoesClientNotSupportWatchListSemantics(lists))
	assert.Len(t, synced(t, lists), 3)
	assert.Len(t, server.asked, 3)
}

// Before all pages are read the API server may have forgotten the version that the first one has. Then the list is streamed.
func TestAListWhoseVersionIsForgottenIsStreamed(t *testing.T) {
	server := &pageServer{t: t, failAt: 2, failure: apierrors.NewResourceExpired("the continue token is too old")}
	stream := watch.NewFakeWithChanSize(6, false)
	complete := fake.NAB("")
	complete.ResourceVersion, complete.Annotations = "99", map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	for _, name := range []string{"stays", "goes", "changes"} {
		stream.Add(fake.NAB(name))
	}
	changed := fake.NAB("changes")
	changed.ResourceVersion = "98"
	stream.Modify(changed)
	stream.Delete(fake.NAB("goes"))
	stream.Action(watch.Bookmark, complete)
	watches := 0
	lists := &toolscache.ListWatch{
		ListWithContextFunc: server.list,
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if watches++; watches == 1 {
				assert.True(t, *options.SendInitialEvents)
				return stream, nil
			}
			assert.Equal(t, "99", options.ResourceVersion, "it goes on where the stream was complete")
			return watch.NewFake(), nil
		},
	}
	versions := map[string]string{}
	for _, object := range synced(t, lists) {
		versions[object.(*oadpv1alpha1.NonAdminBackup).Name] = object.(*oadpv1alpha1.NonAdminBackup).ResourceVersion
	}
	assert.Equal(t, map[string]string{"stays": fake.NAB("stays").ResourceVersion, "changes": "98"}, versions)
	assert.Len(t, server.asked, 2)
}

func TestAStreamThatFailsIsNoShorterList(t *testing.T) {
	for title, last := range map[string]func(*watch.FakeWatcher){
		"it ends": (*watch.FakeWatcher).Stop,
		"an error": func(stream *watch.FakeWatcher) {
			stream.Error(&apierrors.NewTooManyRequestsError("busy").ErrStatus)
		},
	} {
		t.Run(title, func(t *testing.T) {
			stream := watch.NewFakeWithChanSize(2, false)
			stream.Add(fake.NAB("nightly"))
			last(stream)
			open := func(context.Context, metav1.ListOptions) (watch.Interface, error) { return stream, nil }
			_, err := streamedList(t.Context(), open, trimmed)
			assert.ErrorContains(t, err, "a streamed list: ")
		})
	}
}
