package tools

import (
	"sync"
)

const (
	// maxDescribes limits the descriptions of containers at a time in a worker, maxNamespaceDescribes those for one namespace: a
	// store that does not answer holds each for minutes, and must not delay other namespaces.
	maxDescribes          = 10
	maxNamespaceDescribes = 3
)

// Describes counts the descriptions of containers that are under way. The zero value is ready for use.
type Describes struct {
	mutex sync.Mutex
	all   int
	of    map[string]int
}

// Begin reports whether a description may begin for a namespace. If not, it is left out until the next one is due.
func (d *Describes) Begin(namespace string) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.all >= maxDescribes || d.of[namespace] >= maxNamespaceDescribes {
		return false
	}
	if d.of == nil {
		d.of = map[string]int{}
	}
	d.all++
	d.of[namespace]++
	return true
}

// End gives back a place that Begin has granted.
func (d *Describes) End(namespace string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.all--
	if d.of[namespace]--; d.of[namespace] == 0 {
		delete(d.of, namespace)
	}
}
