package tools

import (
	"sync"
)

// Limit is how many may be under way at a time in a worker, in all and for one namespace: what a tenant's store or database
// delays must not delay other namespaces.
type Limit struct{ All, Namespace int }

// Describing limits the descriptions of containers: a store that does not answer holds each for minutes.
var Describing = Limit{All: 10, Namespace: 3}

// Places are the places of a Limit. The zero value is ready for use.
type Places struct {
	mutex sync.Mutex
	all   int
	of    map[string]int
}

// Begin takes a place for a namespace, and reports whether there was one.
func (p *Places) Begin(namespace string, limit Limit) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.all >= limit.All || p.of[namespace] >= limit.Namespace {
		return false
	}
	if p.of == nil {
		p.of = map[string]int{}
	}
	p.all++
	p.of[namespace]++
	return true
}

// End gives back a place that Begin has taken.
func (p *Places) End(namespace string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.all--
	if p.of[namespace]--; p.of[namespace] == 0 {
		delete(p.of, namespace)
	}
}
