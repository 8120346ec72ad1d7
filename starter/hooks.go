//go:build !outage

package main

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"holdfast.dev/holdfast/k8s/watch"
)

// hookCache and hookWorkflows change nothing. In the build for the outage tests (tag outage) they let a test give each of
// its cases a watcher of its own, and stop it at any signal.
func hookCache(options cache.Options, _ string) cache.Options { return options }

func hookWorkflows(workflows watch.Workflows) watch.Workflows { return workflows }
