package caches

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

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
