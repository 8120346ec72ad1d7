package fake

import (
	"context"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/worker"
	"k8s.io/client-go/tools/events"

	"holdfast.dev/holdfast/activities/buckets"
	"holdfast.dev/holdfast/activities/collection"
	"holdfast.dev/holdfast/activities/synchronization"
	"holdfast.dev/holdfast/k8s/objectstore"
)

func (w *World) buckets(recorder events.EventRecorder) *buckets.Buckets {
	return &buckets.Buckets{
		Client: w.Client, Policy: source{w}, OADPNamespace: OADPNamespace, Events: recorder,
		OpenLocation: func(_ context.Context, location *velerov1.BackupStorageLocation) (*objectstore.Store, error) {
			if w.Bucket == "" {
				return nil, objectstore.Unusable("open BackupStorageLocation "+location.Name, "there is none in this world")
			}
			return openFolder(w.Bucket)
		},
	}
}

// RegisterPeriodic registers the activities of periodic work over the world; what is a minute old may be collected.
func (w *World) RegisterPeriodic(registry worker.ActivityRegistry) {
	(&synchronization.Activities{
		Cluster: w.cluster, Policy: source{w}, OADPNamespace: OADPNamespace, Buckets: w.Buckets,
	}).Register(registry)
	(&collection.Activities{
		Cluster: w.cluster, Policy: source{w}, OADPNamespace: OADPNamespace, ClusterID: Cluster, Grace: time.Minute,
	}).Register(registry)
}
