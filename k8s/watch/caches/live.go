package caches

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Source is where a Live reads from.
type Source struct {
	Cache client.Client
	// API is the API server.
	API client.Reader
	// Refused is called with the error of each failed read.
	Refused func(error)
	// Trim is the cache's transform.
	Trim toolscache.TransformFunc
	Log  *zap.Logger
}

// Live is a reader of the cache that knows which cached objects are out of date, for the kinds that were compared.
type Live struct {
	client.Reader
	from  Source
	kinds map[reflect.Type]*difference
}

// difference is what the cache lacks, or has in an old version, and what it has although it is gone.
type difference struct {
	changed, gone map[client.ObjectKey]client.Object
}

// NewLive returns a reader of the cache without a comparison yet.
func NewLive(from Source) *Live {
	return &Live{Reader: from.Cache, from: from, kinds: map[reflect.Type]*difference{}}
}

// Each calls do for every object of a kind in a cache that matches. The objects are the cache's own.
func Each(
	ctx context.Context, cache client.Client, kind client.Object, do func(client.Object), matching ...client.ListOption,
) error {
	gvk, err := apiutil.GVKForObject(kind, cache.Scheme())
	if err != nil {
		return fmt.Errorf("list in the cache: %w", err)
	}
	list, err := cache.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return fmt.Errorf("list in the cache: %w", err)
	}
	err = cache.List(ctx, list.(client.ObjectList), append(matching, client.UnsafeDisableDeepCopy)...)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			do(item.(client.Object))
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("list in the cache: %w", err)
	}
	return nil
}

// Compare finds the objects for which the cache is out of date. It lists metadata only, and reads each object that differs. An
// object that cannot be read counts as the cache has it: it must not hide the others.
func (l *Live) Compare(ctx context.Context, kind client.Object, namespace string) error {
	cached := map[client.ObjectKey]client.Object{}
	err := Each(ctx, l.from.Cache, kind, func(object client.Object) {
		cached[client.ObjectKeyFromObject(object)] = object
	}, client.InNamespace(namespace))
	if err != nil {
		return err
	}
	d := &difference{changed: map[client.ObjectKey]client.Object{}, gone: map[client.ObjectKey]client.Object{}}
	var unread error
	err = l.listMetadata(ctx, kind, namespace, func(found *metav1.PartialObjectMetadata) error {
		key := client.ObjectKeyFromObject(found)
		known := cached[key]
		if known != nil && known.GetUID() == found.UID && known.GetResourceVersion() == found.ResourceVersion {
			delete(cached, key)
			return nil
		}
		whole, err := l.read(ctx, key, kind)
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
		l.from.Log.Warn("objects cannot be read in a live sweep", zap.Error(unread))
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

func (l *Live) listMetadata(
	ctx context.Context, kind client.Object, namespace string, take func(*metav1.PartialObjectMetadata) error,
) error {
	gvk, err := apiutil.GVKForObject(kind, l.from.Cache.Scheme())
	if err != nil {
		return fmt.Errorf("list live: %w", err)
	}
	var next string
	for {
		if next, err = l.metadataPage(ctx, gvk, next, namespace, take); err != nil || next == "" {
			return err
		}
	}
}

// metadataPage holds pages while a page is in use: metadata may be large, too.
func (l *Live) metadataPage(
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
	err = l.from.API.List(ctx, list, client.InNamespace(namespace), client.Limit(metadataPageSize), client.Continue(from))
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

// read reads one object as the cache would hold it; nil if it is gone.
func (l *Live) read(ctx context.Context, key client.ObjectKey, kind client.Object) (client.Object, error) {
	object := reflect.New(reflect.TypeOf(kind).Elem()).Interface().(client.Object)
	switch err := l.from.API.Get(ctx, key, object); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		l.from.Refused(err)
		return nil, fmt.Errorf("read %s live: %w", key, err)
	}
	kept, err := l.from.Trim(object)
	if err != nil {
		return nil, fmt.Errorf("trim %s: %w", key, err)
	}
	return kept.(client.Object), nil
}

// Changed returns the objects of a kind that the cache lacks or has in an old version.
func (l *Live) Changed(kind client.Object) []client.Object {
	return slices.Collect(maps.Values(l.of(kind).changed))
}

// Moved returns the objects of a kind that have changed or were deleted since the cache had them.
func (l *Live) Moved(kind client.Object) []client.Object {
	return slices.AppendSeq(l.Changed(kind), maps.Values(l.of(kind).gone))
}

// of is the difference of a kind; empty if it was not compared.
func (l *Live) of(kind client.Object) difference {
	if d := l.kinds[reflect.TypeOf(kind)]; d != nil {
		return *d
	}
	return difference{}
}

// Get implements client.Reader.
func (l *Live) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	d := l.of(into)
	if found, ok := d.changed[key]; ok {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found).Elem())
		return nil
	}
	if _, gone := d.gone[key]; gone {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return l.Reader.Get(ctx, key, into, options...)
}
