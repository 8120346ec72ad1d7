package e2e_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reread is how soon an object is read again of which nothing is heard: after an outage, or where a condition is about others too.
const reread = 2 * time.Second

// awaitObject returns an object as soon as it is as wished. The API server tells of changes: dozens of tests that ask it ten times a
// second each keep it busier than Holdfast does. ok is told whether the object is there.
func awaitObject[T client.Object](t *testing.T, as client.Client, of T, limit time.Duration, want string, ok func(now T, there bool) bool) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for {
		now := reflect.New(reflect.TypeOf(of).Elem()).Interface().(T) // an empty one: what is not there is not overwritten
		err := as.Get(ctx, client.ObjectKeyFromObject(of), now)
		known := err == nil || apierrors.IsNotFound(err)
		if known && ok(now, err == nil) {
			return now
		}
		if ctx.Err() != nil || !nextChange(ctx, of, now.GetResourceVersion()) {
			seen, _ := json.Marshal(now)
			require.Failf(t, "never as wished", "%s/%s: %s; last seen: %s; error: %v", of.GetNamespace(), of.GetName(), want, seen, err)
		}
	}
}

// nextChange returns when the object is another than that of a version, at the latest when it is to be read again; false when there is
// no more time.
func nextChange(ctx context.Context, of client.Object, version string) bool {
	again := time.NewTimer(reread)
	defer again.Stop()
	var changes <-chan watch.Event // nil: the API server is away
	if list, err := listFor(of); err == nil {
		watching, stop := context.WithTimeout(ctx, reread)
		defer stop()
		watcher, err := admin.Watch(watching, list, client.InNamespace(of.GetNamespace()),
			client.MatchingFields{"metadata.name": of.GetName()}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
		if err == nil {
			defer watcher.Stop()
			changes = watcher.ResultChan()
		}
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-again.C:
			return true
		case event, open := <-changes:
			if open && event.Type != watch.Error {
				return true
			}
			changes = nil
		}
	}
}

// listFor returns an empty list of the object's kind.
func listFor(object client.Object) (client.ObjectList, error) {
	kind, err := admin.GroupVersionKindFor(object)
	if err != nil {
		return nil, err
	}
	list, err := admin.Scheme().New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err != nil {
		return nil, err
	}
	return list.(client.ObjectList), nil
}
