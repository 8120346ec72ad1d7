package caches

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// pageSize is how many objects are in a page. One object takes up to 1.5 MB on the wire and, if its selectors are empty, some
// 16 MB decoded: a page takes at most 80 MB. It does not grow while pages are small, because the next one may hold the largest
// objects. 30,000 objects take 6,000 requests, 12 seconds at 500 a second.
const pageSize = 5

// pages is held while a page is read: several caches are filled at a time, and memory is reserved for one page.
var pages = make(chan struct{}, 1)

// newInformer makes informers whose lists never hold more than one page of untrimmed objects. An API server of 1.34 or later
// streams the first list object by object, and pages are read only if that fails. An older one would send a whole list at once
// if it may be served from its cache, and the reflector transforms nothing before it has the whole list. After an outage of the
// API server they catch up within a few seconds, see outlast.
func newInformer(trim toolscache.TransformFunc, refused func(error)) func(
	toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers,
) toolscache.SharedIndexInformer {
	return func(
		lists toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		inner := toolscache.ToListerWatcherWithContext(lists)
		return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return listTrimmed(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
					return outlast(ctx, refused, func() (runtime.Object, error) { return inner.ListWithContext(ctx, options) })
				}, options, trim)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return outlast(ctx, refused, func() (watch.Interface, error) { return inner.WatchWithContext(ctx, options) })
			},
		}, kind, resync, indexers)
	}
}

type listFunc func(context.Context, metav1.ListOptions) (runtime.Object, error)

// listTrimmed reads all pages of a list, whichever page was requested, and returns them as one. The API server splits only
// consistent reads into pages: those without a resource version.
func listTrimmed(
	ctx context.Context, list listFunc, options metav1.ListOptions, trim toolscache.TransformFunc,
) (runtime.Object, error) {
	options.ResourceVersion, options.ResourceVersionMatch = "", ""
	options.Limit, options.Continue = pageSize, ""
	var all []runtime.Object
	for {
		page, next, err := trimmedPage(ctx, list, options, trim, &all)
		if err != nil {
			return nil, err
		}
		if options.Continue = next; next != "" {
			continue
		}
		if err := meta.SetList(page, all); err != nil {
			return nil, fmt.Errorf("put the pages of a list together: %w", err)
		}
		return page, nil
	}
}

// trimmedPage adds the objects of one page, and returns the page without them.
func trimmedPage(
	ctx context.Context, list listFunc, options metav1.ListOptions, trim toolscache.TransformFunc, all *[]runtime.Object,
) (page runtime.Object, next string, err error) {
	select {
	case pages <- struct{}{}:
	case <-ctx.Done():
		return nil, "", ctx.Err()
	}
	defer func() { <-pages }()
	if page, err = list(ctx, options); err != nil {
		return nil, "", err
	}
	err = meta.EachListItem(page, func(item runtime.Object) error {
		kept, err := trim(item)
		*all = append(*all, kept.(runtime.Object))
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("trim a page: %w", err)
	}
	accessor, err := meta.ListAccessor(page)
	if err != nil {
		return nil, "", fmt.Errorf("read a page: %w", err)
	}
	next = accessor.GetContinue()
	accessor.SetContinue("")
	accessor.SetRemainingItemCount(nil)
	return page, next, nil
}
