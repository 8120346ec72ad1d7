package usage

import (
	"context"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov2alpha1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v2alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
)

// Made is a Velero Backup, by its name, that was made for a NonAdminBackup of a namespace.
type Made struct{ Namespace, Name string }

// HeldBytes is what Velero says that the volumes of the namespaces' own backups hold, by namespace: those that it copies or
// moves, before the uploader deduplicates. Snapshots that stay in the cloud have no size here. The options select volumes.
func HeldBytes(
	ctx context.Context, reader client.Reader, oadpNamespace string, made map[Made]bool, options ...client.ListOption,
) (map[string]int64, error) {
	held := map[string]int64{}
	add := func(namespace string, volume client.Object, bytes int64) {
		if made[Made{namespace, volume.GetLabels()[velerov1.BackupNameLabel]}] {
			held[namespace] += bytes
		}
	}
	options = append(options, client.InNamespace(oadpNamespace))
	err := activities.EachPage(ctx, reader, func(page *velerov1.PodVolumeBackupList) {
		for i := range page.Items {
			each := &page.Items[i]
			add(each.Spec.Pod.Namespace, each, each.Status.Progress.TotalBytes)
		}
	}, options...)
	if err != nil {
		return nil, fmt.Errorf("list PodVolumeBackups: %w", err)
	}
	err = activities.EachPage(ctx, reader, func(page *velerov2alpha1.DataUploadList) {
		for i := range page.Items {
			each := &page.Items[i]
			add(each.Spec.SourceNamespace, each, each.Status.Progress.TotalBytes)
		}
	}, options...)
	if err != nil {
		return nil, fmt.Errorf("list DataUploads: %w", err)
	}
	return held, nil
}
