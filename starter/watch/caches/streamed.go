package caches

import (
	"context"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

type watchFunc func(context.Context, metav1.ListOptions) (watch.Interface, error)

// streamTimeout is how long the API server may take to stream a list.
const streamTimeout = 15 * time.Minute

// streamedList reads a list object by object. A stream is dearer than pages, see newInformer. But it needs no version that the
// API server forgets after five minutes: a busy one may not answer all pages by then. An error has the reflector list anew: an
// API server before 1.34 may not stream, and any ends a stream to which changes come faster than it is read.
func streamedList(ctx context.Context, open watchFunc, trim toolscache.TransformFunc) (runtime.Object, error) {
	stream, err := open(ctx, metav1.ListOptions{
		SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		TimeoutSeconds: new(int64(streamTimeout.Seconds())),
	})
	if err != nil {
		return nil, err
	}
	defer stream.Stop()
	objects := toolscache.NewStore(toolscache.DeletionHandlingMetaNamespaceKeyFunc, toolscache.WithTransformer(trim))
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case event, more := <-stream.ResultChan():
			if !more {
				return nil, fmt.Errorf("a streamed list: %w", io.ErrUnexpectedEOF)
			}
			version, err := take(event, objects)
			if err != nil {
				return nil, err
			}
			if version != "" {
				return listOf(objects, version), nil
			}
		}
	}
}

// take puts the object of an event into the store, and returns the version of the list once it is complete.
func take(event watch.Event, objects toolscache.Store) (version string, err error) {
	switch event.Type {
	case watch.Added:
		err = objects.Add(event.Object)
	case watch.Modified:
		err = objects.Update(event.Object)
	case watch.Deleted:
		err = objects.Delete(event.Object)
	case watch.Error:
		err = apierrors.FromObject(event.Object)
	case watch.Bookmark:
		bookmark, is := event.Object.(metav1.Object)
		if is && bookmark.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			version = bookmark.GetResourceVersion()
		}
	}
	if err != nil {
		return "", fmt.Errorf("a streamed list: %w", err)
	}
	return version, nil
}

func listOf(objects toolscache.Store, version string) runtime.Object {
	list := &metainternalversion.List{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, object := range objects.List() {
		list.Items = append(list.Items, object.(runtime.Object))
	}
	return list
}
