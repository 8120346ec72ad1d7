package watch

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// liveLists is a reader over lists made at one time; what it does not cover comes from the cache.
type liveLists struct {
	client.Reader
	objects map[reflect.Type]map[client.ObjectKey]client.Object
}

func newLiveLists(cache client.Reader) *liveLists {
	return &liveLists{Reader: cache, objects: map[reflect.Type]map[client.ObjectKey]client.Object{}}
}

// covers says that all objects of a kind will be taken: one that is not among them does not exist.
func (l *liveLists) covers(kind client.Object) {
	l.objects[reflect.TypeOf(kind)] = map[client.ObjectKey]client.Object{}
}

// take adds the objects of a list, or of a page of it, whose kind is covered.
func (l *liveLists) take(list client.ObjectList) {
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		object := item.DeepCopyObject().(client.Object)
		l.objects[reflect.TypeOf(object)][client.ObjectKeyFromObject(object)] = object
		return nil
	})
}

// listed returns all objects of a kind that is covered.
func listed[T client.Object](l *liveLists) []T {
	var all []T
	for _, object := range l.objects[reflect.TypeFor[T]()] {
		all = append(all, object.(T))
	}
	return all
}

// Get implements client.Reader.
func (l *liveLists) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	objects, covered := l.objects[reflect.TypeOf(into)]
	if !covered {
		return l.Reader.Get(ctx, key, into, options...)
	}
	found, ok := objects[key]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found).Elem())
	return nil
}
