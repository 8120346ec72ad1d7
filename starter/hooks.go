//go:build !outage

package main

import (
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"holdfast.dev/holdfast/workflows/connect"
)

// hookCache, hookLease and hookWorkflows change nothing. In the build for the outage tests (tag outage) they let a test give
// each of its cases a watcher of its own, and stop it at any signal.
func hookCache(options cache.Options, _ string) cache.Options { return options }

func hookLease(lease resourcelock.Interface) resourcelock.Interface { return lease }

func hookWorkflows(workflows connect.Workflows) connect.Workflows { return workflows }
