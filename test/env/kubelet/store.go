package kubelet

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

var everything = fields.Everything()

// followed is a store that tells of its changes.
type followed struct {
	cache.Store
	changed func(object any)
	listed  atomic.Bool
}

// Add implements cache.Store.
func (f *followed) Add(object any) error {
	err := f.Store.Add(object)
	f.changed(object)
	return err
}

// Update implements cache.Store.
func (f *followed) Update(object any) error {
	err := f.Store.Update(object)
	f.changed(object)
	return err
}

// Delete implements cache.Store.
func (f *followed) Delete(object any) error {
	err := f.Store.Delete(object)
	f.changed(object)
	return err
}

// Replace implements cache.Store.
func (f *followed) Replace(objects []any, resourceVersion string) error {
	err := f.Store.Replace(objects, resourceVersion)
	f.listed.Store(true)
	f.changed(nil)
	return err
}

// switched is something that can be off for a time and that others wait for.
type switched struct {
	mu   sync.Mutex
	open chan struct{} // closed while on
}

func newSwitched() *switched {
	s := &switched{open: make(chan struct{})}
	close(s.open)
	return s
}

func (s *switched) on() bool {
	select {
	case <-s.current():
		return true
	default:
		return false
	}
}

func (s *switched) set(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := true
	select {
	case <-s.open:
	default:
		was = false
	}
	switch {
	case on && !was:
		close(s.open)
	case !on && was:
		s.open = make(chan struct{})
	}
}

// wait returns when it is on, or with ctx's error when ctx ends.
func (s *switched) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.current():
		return ctx.Err()
	}
}

func (s *switched) current() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}
