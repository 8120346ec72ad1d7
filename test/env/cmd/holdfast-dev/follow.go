package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// follower watches one object, as its tenant, and tells every change of what a person wants to know.
type follower struct {
	client client.WithWatch
	object *unstructured.Unstructured // its last known state
	shown  map[string]string
}

// newFollower follows an object in the demo's namespace.
func newFollower(c client.WithWatch, kind, name string) *follower {
	object := newObject("oadp.openshift.io/v1alpha1", kind, demoNamespace, name)
	return &follower{client: c, object: object, shown: map[string]string{}}
}

func newObject(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// state is the object as it was at one moment after the request.
type state struct {
	object  *unstructured.Unstructured
	deleted bool
	elapsed time.Duration
}

// verdict looks at a new state and says whether the wait is over; an error ends it too.
type verdict func(state) (done bool, err error)

// arrival is an event and when it came, which may be some time before it is read.
type arrival struct {
	watch.Event
	at time.Time
}

// until follows the object, calling request once the watch is open, until the verdict is given or ctx ends. Times are shown since
// the request.
func (f *follower) until(ctx context.Context, request func() error, judge verdict) error {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(f.object.GetAPIVersion())
	list.SetKind(f.object.GetKind() + "List")
	begin := time.Now()
	for requested := false; ; requested = true {
		changes, err := f.client.Watch(ctx, list, client.InNamespace(f.object.GetNamespace()))
		if err != nil {
			return fmt.Errorf("watch the %s as the tenant: %w", f.object.GetKind(), err)
		}
		arrivals := stamp(changes)
		if !requested {
			begin = time.Now()
			err = request()
		}
		done := false
		if err == nil {
			done, err = f.read(ctx, arrivals, begin, judge)
		}
		changes.Stop()
		if done || err != nil {
			return err
		}
	}
}

// stamp notes the time of each event as it comes. The channel ends with the watch.
func stamp(changes watch.Interface) <-chan arrival {
	const plenty = 1000 // an object has a few dozen changes
	arrivals := make(chan arrival, plenty)
	go func() {
		defer close(arrivals)
		for event := range changes.ResultChan() {
			select {
			case arrivals <- arrival{event, time.Now()}:
			default: // a lost event is made good by the next one, since each carries the whole object
			}
		}
	}()
	return arrivals
}

// read handles events until the verdict; it returns false without an error when the API server has closed the watch.
func (f *follower) read(ctx context.Context, arrivals <-chan arrival, begin time.Time, judge verdict) (bool, error) {
	for {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case event, open := <-arrivals:
			if !open {
				return false, nil
			}
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || object.GetName() != f.object.GetName() {
				continue
			}
			f.object = object
			now := state{object: object, deleted: event.Type == watch.Deleted, elapsed: max(event.at.Sub(begin), 0)}
			f.show(now)
			if done, err := judge(now); done || err != nil {
				return done, err
			}
		}
	}
}

// show prints the facts that differ from what was printed before.
func (f *follower) show(now state) {
	if now.deleted {
		fmt.Printf("   %6.2fs  the %s is gone\n", now.elapsed.Seconds(), now.object.GetKind())
		return
	}
	for _, fact := range facts(now.object) {
		if f.shown[fact.name] == fact.value {
			continue
		}
		f.shown[fact.name] = fact.value
		fmt.Printf("   %6.2fs  %-27s %s\n", now.elapsed.Seconds(), fact.name, fact.value)
	}
}

type fact struct{ name, value string }

// facts lists what is known of a backup, a location, a restore, a FoundationDB backup or a drill, in the order in which it comes
// to be.
func facts(object *unstructured.Unstructured) []fact {
	var known []fact
	add := func(name, value string) {
		if value != "" {
			known = append(known, fact{name, value})
		}
	}
	add("phase", text(object, "status", "phase"))
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if !ok {
			continue
		}
		add(fmt.Sprint(condition["type"]),
			fmt.Sprintf("%v (%v): %v", condition["status"], condition["reason"], condition["message"]))
	}
	add("Velero Backup", text(object, "status", "veleroBackup", "name"))
	add("Velero phase", text(object, "status", "veleroBackup", "status", "phase"))
	if position, found, _ := unstructured.NestedInt64(object.Object, "status", "queueInfo", "estimatedQueuePosition"); found {
		add("queue position", fmt.Sprint(position))
	}
	add("Velero location", text(object, "status", "veleroBackupStorageLocation", "name"))
	add("Velero phase", text(object, "status", "veleroBackupStorageLocation", "status", "phase"))
	add("Velero message", text(object, "status", "veleroBackupStorageLocation", "status", "message"))
	add("Velero Restore", text(object, "status", "veleroRestore", "name"))
	add("Velero phase", text(object, "status", "veleroRestore", "status", "phase"))
	add("drill's namespace", text(object, "status", "namespace"))
	add("finalization", text(object, "status", "finalization", "phase"))
	add("DeleteBackupRequest", text(object, "status", "veleroDeleteBackupRequest", "status", "phase"))
	backups, _, _ := unstructured.NestedSlice(object.Object, "status", "backups")
	for _, b := range backups {
		if backup, ok := b.(map[string]any); ok {
			add("backup", fmt.Sprintf("%v at %v", backup["state"], backup["url"]))
		}
	}
	if at := object.GetDeletionTimestamp(); at != nil {
		add("deletion", "asked for, finalizers "+fmt.Sprint(object.GetFinalizers()))
	}
	return known
}

func text(object *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedString(object.Object, fields...)
	return value
}

func conditionStatus(object *unstructured.Unstructured, kind string) (status, message string) {
	condition := conditionOf(object, kind)
	return condition["status"], condition["message"]
}

// conditionOf returns a condition's texts, none if there is no such condition.
func conditionOf(object *unstructured.Unstructured, kind string) map[string]string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == kind {
			texts := map[string]string{}
			for field, value := range condition {
				texts[field] = fmt.Sprint(value)
			}
			return texts
		}
	}
	return nil
}
