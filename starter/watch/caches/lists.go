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
				return listTrimmed(ctx, inner.ListWithContext, options, trim, refused)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				limit := 0
				if options.SendInitialEvents != nil {
					limit = streamFailures
				}
				return outlast(ctx, refused, limit, func() (watch.Interface, error) { return inner.WatchWithContext(ctx, options) })
			},
		}, kind, resync, indexers)
	}
}

type listFunc func(context.Context, metav1.ListOptions) (runtime.Object, error)

// listTrimmed reads all pages of a list, whichever page was requested, and returns them as one. The API server splits only
// consistent reads into pages: those without a resource version. A page is read again after an outage; other lists read theirs
// meanwhile.
func listTrimmed(
	ctx context.Context, list listFunc, options metav1.ListOptions, trim toolscache.TransformFunc, refused func(error),
) (runtime.Object, error) {
	options.ResourceVersion, options.ResourceVersionMatch = "", ""
	options.Limit, options.Continue = pageSize, ""
	var all []runtime.Object
	for {
		read, err := outlast(ctx, refused, 0, func() (page, error) { return trimmedPage(ctx, list, options, trim) })
		if err != nil {
			return nil, err
		}
		all = append(all, read.items...)
		if options.Continue = read.next; read.next != "" {
			continue
		}
		if err := meta.SetList(read.list, all); err != nil {
			return nil, fmt.Errorf("put the pages of a list together: %w", err)
		}
		return read.list, nil
	}
}

// page is a part of a list.
type page struct {
	list  runtime.Object
	items []runtime.Object // trimmed
	next  string
}

func trimmedPage(
	ctx context.Context, list listFunc, options metav1.ListOptions, trim toolscache.TransformFunc,
) (read page, err error) {
	select {
	case pages <- struct{}{}:
	case <-ctx.Done():
		return page{}, ctx.Err()
	}
	defer func() { <-pages }()
	if read.list, err = list(ctx, options); err != nil {
		return page{}, err
	}
	err = meta.EachListItem(read.list, func(item runtime.Object) error {
		kept, err := trim(item)
		read.items = append(read.items, kept.(runtime.Object))
		return err
	})
	if err != nil {
		return page{}, fmt.Errorf("trim a page: %w", err)
	}
	accessor, err := meta.ListAccessor(read.list)
	if err != nil {
		return page{}, fmt.Errorf("read a page: %w", err)
	}
	read.next = accessor.GetContinue()
	accessor.SetContinue("")
	accessor.SetRemainingItemCount(nil)
	return read, nil
}
