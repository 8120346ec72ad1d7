package caches

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// pages is held while a page is read: several caches are filled at a time, and memory is reserved for one page.
var pages = make(chan struct{}, 1)

// newInformer makes informers whose lists never hold more than one page of untrimmed objects. The reflector transforms nothing
// before it has the whole list; and a streamed list takes twice the CPU time of pages, see docs/adr/0070. After an outage of the
// API server they catch up within a few seconds, see outlast.
func newInformer(trim toolscache.TransformFunc, refused func(error)) func(
	toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers,
) toolscache.SharedIndexInformer {
	return func(
		lists toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		inner := toolscache.ToListerWatcherWithContext(lists)
		return toolscache.NewSharedIndexInformer(inPages{&toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				list, err := listTrimmed(ctx, inner.ListWithContext, options, trim, refused)
				if apierrors.IsResourceExpired(err) {
					return streamedList(ctx, inner.WatchWithContext, trim)
				}
				return list, err
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return outlast(ctx, refused, func() (watch.Interface, error) { return inner.WatchWithContext(ctx, options) })
			},
		}}, kind, resync, indexers)
	}
}

// inPages has a reflector ask for a list, and for no stream of it.
type inPages struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported is client-go's name for that.
func (inPages) IsWatchListSemanticsUnSupported() bool { return true }

type listFunc func(context.Context, metav1.ListOptions) (runtime.Object, error)

// listTrimmed reads all pages of a list, whichever page was requested, and returns them as one. The API server splits only
// consistent reads into pages: those without a resource version. A page is read again after an outage, with few objects: a large
// one may be what a proxy does not let through. Other lists read theirs meanwhile.
func listTrimmed(
	ctx context.Context, list listFunc, options metav1.ListOptions, trim toolscache.TransformFunc, refused func(error),
) (runtime.Object, error) {
	options.ResourceVersion, options.ResourceVersionMatch = "", ""
	options.Limit, options.Continue = smallestPage, ""
	all := &metainternalversion.List{}
	for {
		read, err := outlast(ctx, refused, func() (page, error) {
			read, err := trimmedPage(ctx, list, options, trim)
			if err != nil {
				options.Limit = smallestPage
			}
			return read, err
		})
		if err != nil {
			return nil, err
		}
		options.Limit = int64(nextPage(int(options.Limit), read.answer))
		if read.answer.tooLarge {
			continue
		}
		all.Items, all.ResourceVersion = append(all.Items, read.items...), read.version
		if options.Continue = read.next; read.next == "" {
			return all, nil
		}
	}
}

// page is a part of a list.
type page struct {
	items         []runtime.Object // trimmed
	version, next string
	// answer is what was read of it; if that was too large, there is nothing else.
	answer answer
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
	if options.Limit > smallestPage {
		read.answer.limit = pageLimit
	}
	untrimmed, err := list(measured(ctx, &read.answer), options)
	switch {
	case read.answer.tooLarge:
		return page{answer: read.answer}, nil
	case err != nil:
		return page{}, err
	}
	err = meta.EachListItem(untrimmed, func(item runtime.Object) error {
		kept, err := trim(item)
		read.items = append(read.items, kept.(runtime.Object))
		return err
	})
	if err != nil {
		return page{}, fmt.Errorf("trim a page: %w", err)
	}
	accessor, err := meta.ListAccessor(untrimmed)
	if err != nil {
		return page{}, fmt.Errorf("read a page: %w", err)
	}
	read.version, read.next = accessor.GetResourceVersion(), accessor.GetContinue()
	return read, nil
}
