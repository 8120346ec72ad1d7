package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
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

// answerTime is how long a question may take: an API server that stands still does not answer, and the next try asks again.
const answerTime = 10 * time.Second

// awaitSuccess is eventually.Succeeds for what is asked over the network, with patience.
func awaitSuccess(t *testing.T, try func(context.Context) error) {
	t.Helper()
	awaitSuccessFor(t, patience, try)
}

func awaitSuccessFor(t *testing.T, limit time.Duration, try func(context.Context) error) {
	t.Helper()
	eventually.Succeeds(t, limit, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), answerTime)
		defer cancel()
		return try(ctx)
	})
}

// awaitAllGone waits until none of the objects is there.
func awaitAllGone(t *testing.T, objects ...client.Object) {
	t.Helper()
	awaitSuccess(t, func(ctx context.Context) error { return gone(ctx, admin, objects...) })
}

// gone is an error while one of the objects is there, or while nobody says whether it is.
func gone(ctx context.Context, as client.Client, objects ...client.Object) error {
	for _, object := range objects {
		key, now := client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object)
		switch err := as.Get(ctx, key, now); {
		case err == nil:
			return fmt.Errorf("%T %s is still there", object, key)
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("get %T %s: %w", object, key, err)
		}
	}
	return nil
}

// awaitFiles waits until as many objects are in the stack's bucket below a prefix.
func awaitFiles(t *testing.T, prefix string, count int) {
	t.Helper()
	awaitSuccess(t, func(context.Context) error {
		found, err := stack.Objects(prefix)
		if err == nil && len(found) < count {
			err = fmt.Errorf("of %d files in %s there are %d", count, prefix, len(found))
		}
		return err
	})
}

// inOADP names an object of the OADP namespace.
func inOADP(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: name}
}

// doubts are what assertions say of a state that may not have come yet: a try asserts on them, not on the test.
type doubts struct{ said []error }

func (d *doubts) Errorf(format string, args ...any) {
	d.said = append(d.said, fmt.Errorf(format, args...))
}

func (d *doubts) err() error { return errors.Join(d.said...) }

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

// pauseVelero has Velero stand still until resume, at the latest until the test ends: what waits for it waits. Not for parallel tests.
func pauseVelero(t *testing.T) (resume func()) {
	t.Helper()
	velero := stack.Component(env.Velero)
	t.Cleanup(func() { _ = velero.Resume() })
	require.NoError(t, velero.Pause())
	return func() {
		t.Helper()
		require.NoError(t, velero.Resume())
	}
}
