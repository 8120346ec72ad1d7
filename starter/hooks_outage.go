//go:build outage

package main

import (
	"context"
	"os"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"holdfast.dev/holdfast/k8s/process/failpoint"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// hookCache limits the watcher to one tenant's namespace and the OADP namespace.
func hookCache(options cache.Options, oadpNamespace string) cache.Options {
	if namespace := os.Getenv(failpoint.EnvNamespace); namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{namespace: {}, oadpNamespace: {}}
	}
	return options
}

// hookLease lets a watcher of one tenant's namespace lead beside those of others.
func hookLease(lease resourcelock.Interface) resourcelock.Interface {
	if os.Getenv(failpoint.EnvNamespace) != "" {
		return nil
	}
	return lease
}

// hookWorkflows reports every signal.
func hookWorkflows(workflows connect.Workflows) connect.Workflows { return &reporting{workflows} }

type reporting struct{ connect.Workflows }

// SignalWithStart implements connect.Workflows.
func (r *reporting) SignalWithStart(
	ctx context.Context, kind contract.Kind, ref contract.ObjectRef, changed contract.Hint,
) error {
	if namespace := os.Getenv(failpoint.EnvNamespace); namespace != "" && ref.Namespace != namespace {
		return nil // of an object that this watcher cannot see, through what the OADP namespace holds for it
	}
	failpoint.Report(ctx, failpoint.Point{Step: failpoint.Signal})
	err := r.Workflows.SignalWithStart(ctx, kind, ref, changed)
	failpoint.Report(ctx, failpoint.Point{Step: failpoint.Signal, After: true})
	return err
}
