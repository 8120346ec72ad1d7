package watch

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/watch/trim"
)

// live is a reader of the cache that knows where the cache is behind the API server, for the kinds that were compared.
type live struct {
	client.Reader
	kinds map[reflect.Type]*difference
}

// difference is what the cache has not got, or has otherwise, and what it has although it is gone.
type difference struct {
	changed, gone map[client.ObjectKey]client.Object
}

func newLive(cache client.Reader) *live {
	return &live{Reader: cache, kinds: map[reflect.Type]*difference{}}
}

// compare finds out where the cache is behind. Only metadata are listed; what differs is read whole, one at a time. What cannot
// be read counts as the cache has it: it must not hide the others.
func (w *Watcher) compare(ctx context.Context, l *live, kind client.Object, list client.ObjectList, namespace string) error {
	cached := map[client.ObjectKey]client.Object{}
	if err := w.gatherer.Reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list in the cache: %w", err)
	}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object := item.(client.Object)
		cached[client.ObjectKeyFromObject(object)] = object
		return nil
	})
	if err != nil {
		return fmt.Errorf("list in the cache: %w", err)
	}
	d := &difference{changed: map[client.ObjectKey]client.Object{}, gone: map[client.ObjectKey]client.Object{}}
	var unread error
	err = w.listMetadata(ctx, kind, namespace, func(found *metav1.PartialObjectMetadata) error {
		key := client.ObjectKeyFromObject(found)
		known := cached[key]
		if known != nil && known.GetUID() == found.UID && known.GetResourceVersion() == found.ResourceVersion {
			delete(cached, key)
			return nil
		}
		whole, err := w.readLive(ctx, key, kind)
		switch {
		case err != nil:
			delete(cached, key)
			unread = errors.Join(unread, err)
		case whole != nil:
			delete(cached, key)
			d.changed[key] = whole
		}
		return ctx.Err()
	})
	if unread != nil {
		w.Log.Warn("objects cannot be read in a live sweep", zap.Error(unread))
	}
	if err != nil {
		return err
	}
	for key, object := range cached {
		d.gone[key] = object.DeepCopyObject().(client.Object)
	}
	l.kinds[reflect.TypeOf(kind)] = d
	return nil
}

func (w *Watcher) listMetadata(
	ctx context.Context, kind client.Object, namespace string, take func(*metav1.PartialObjectMetadata) error,
) error {
	gvk, err := apiutil.GVKForObject(kind, k8s.Scheme())
	if err != nil {
		return fmt.Errorf("list live: %w", err)
	}
	var next string
	for {
		if next, err = w.metadataPage(ctx, gvk, next, namespace, take); err != nil || next == "" {
			return err
		}
	}
}

// metadataPage holds the place of a page as long as it is in use: metadata may be large, too.
func (w *Watcher) metadataPage(
	ctx context.Context, gvk schema.GroupVersionKind, from, namespace string, take func(*metav1.PartialObjectMetadata) error,
) (next string, err error) {
	select {
	case pages <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-pages }()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err = w.manager.GetAPIReader().List(ctx, list,
		client.InNamespace(namespace), client.Limit(metadataPageSize), client.Continue(from))
	if err != nil {
		return "", fmt.Errorf("list live: %w", err)
	}
	for i := range list.Items {
		if err := take(&list.Items[i]); err != nil {
			return "", err
		}
	}
	return list.GetContinue(), nil
}

// readLive reads one object as the cache would hold it; nil if it is gone.
func (w *Watcher) readLive(ctx context.Context, key client.ObjectKey, kind client.Object) (client.Object, error) {
	object := reflect.New(reflect.TypeOf(kind).Elem()).Interface().(client.Object)
	switch err := w.manager.GetAPIReader().Get(ctx, key, object); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		w.Refusals.take(err)
		return nil, fmt.Errorf("read %s live: %w", key, err)
	}
	kept, err := trim.Object(object)
	if err != nil {
		return nil, fmt.Errorf("trim %s: %w", key, err)
	}
	return kept.(client.Object), nil
}

// changed returns the objects of a kind that the cache has not got as they are.
func changed[T client.Object](l *live) []T {
	return objectsOf[T](l.of(reflect.TypeFor[T]()).changed)
}

// moved returns the objects of a kind that have changed or gone since the cache had them.
func moved[T client.Object](l *live) []T {
	return append(changed[T](l), objectsOf[T](l.of(reflect.TypeFor[T]()).gone)...)
}

func objectsOf[T client.Object](of map[client.ObjectKey]client.Object) []T {
	var all []T
	for _, object := range of {
		all = append(all, object.(T))
	}
	return all
}

// of is the difference of a kind; none of one that was not compared.
func (l *live) of(kind reflect.Type) difference {
	if d := l.kinds[kind]; d != nil {
		return *d
	}
	return difference{}
}

// Get implements client.Reader.
func (l *live) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	d := l.of(reflect.TypeOf(into))
	if found, ok := d.changed[key]; ok {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found).Elem())
		return nil
	}
	if _, gone := d.gone[key]; gone {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return l.Reader.Get(ctx, key, into, options...)
}
