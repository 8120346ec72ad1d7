package fake

import (
	"context"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"gocloud.dev/blob/fileblob"

	"holdfast.dev/holdfast/activities/finalization"
	"holdfast.dev/holdfast/activities/stores"
	"holdfast.dev/holdfast/k8s/objectstore"
)

// Finalizations returns the activities that follow a restore, over this world and a folder that stands for the bucket of every
// location. now is the time, that of the machine if nil.
func (w *World) Finalizations(folder string, now func() time.Time) *finalization.Activities {
	return &finalization.Activities{
		Cluster: w.cluster,
		Finder: &finalization.Finder{
			Reader: w.Client, ClusterID: Cluster, OADPNamespace: OADPNamespace, Stores: w.stores(folder),
		},
		Now: now,
	}
}

// stores are those of a folder that stands for the bucket of every location.
func (w *World) stores(folder string) *stores.Stores {
	return &stores.Stores{
		Reader: w.Client,
		OpenLocation: func(context.Context, *velerov1.BackupStorageLocation) (*objectstore.Store, error) {
			return openFolder(folder)
		},
	}
}

// openFolder opens a folder as a bucket.
func openFolder(folder string) (*objectstore.Store, error) {
	bucket, err := fileblob.OpenBucket(folder, &fileblob.Options{Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		return nil, err
	}
	return objectstore.NewStore(bucket, ""), nil
}
