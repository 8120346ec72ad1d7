package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/stall"
	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	downloadPoll    = 100 * time.Millisecond
	downloadCleanup = 2 * time.Second
	// StallLookup leaves time for the clean-up within the workflow's limit of ten seconds.
	StallLookup = 7 * time.Second
)

// CheckStall checks whether Velero has finished a backup without writing it to the object: Velero retries its patch to the next
// phase for about 40 seconds and then never again (Velero #7207). If the contents have been in the object store for half the
// stall timeout while the Backup is InProgress, CheckStall writes that to the NonAdminBackup. The workflow calls it at every
// quarter of the timeout, so that a stall is reported in time even if one check fails. An error means that it could not be
// checked now.
func (b *Activities) CheckStall(ctx context.Context, step contract.BackupStep) (contract.BackupView, error) {
	ctx, cancel := context.WithTimeout(ctx, StallLookup)
	defer cancel()
	return b.update(ctx, step, func(o *Objects) error {
		if o.Backup == nil || o.Backup.Status.Phase != velerov1.BackupPhaseInProgress || o.View(b.now()).Velero.Stalled {
			return nil
		}
		age, err := b.contentsAge(ctx, o)
		if err != nil {
			return fmt.Errorf("check for the contents of Velero Backup %s/%s: %w", o.Backup.Namespace, o.Backup.Name, err)
		}
		if age < b.StallTimeout/2 {
			return nil
		}
		changed, err := b.patchStatus(ctx, o.NAB, func() { ApplyStall(o.NAB) })
		if changed {
			b.recordStalled(o.NAB)
		}
		return err
	})
}

// contentsAge is the time since Velero wrote the backup's contents, zero if they are not there.
func (b *Activities) contentsAge(ctx context.Context, o *Objects) (time.Duration, error) {
	return StoredAge(ctx, b.Client, o.Backup.Spec.StorageLocation,
		NewDownloadRequest(o.NAB, o.Backup, velerov1.DownloadTargetKindBackupContents))
}

// StoredAge is the time since the requested file was written, zero if it does not exist. It uses a URL that Velero signs for a
// DownloadRequest, so that the credentials of the storage location are not needed.
func StoredAge(
	ctx context.Context, cluster client.Client, storageLocation string, request *velerov1.DownloadRequest,
) (time.Duration, error) {
	location := &velerov1.BackupStorageLocation{}
	key := types.NamespacedName{Namespace: request.Namespace, Name: storageLocation}
	if err := cluster.Get(ctx, key, location); err != nil {
		return 0, fmt.Errorf("get BackupStorageLocation %s: %w", key, err)
	}
	if err := cluster.Create(ctx, request); err != nil && !apierrors.IsAlreadyExists(err) {
		return 0, fmt.Errorf("create DownloadRequest %s/%s: %w", request.Namespace, request.Name, err)
	}
	defer func() { // the URL in it opens the store to its reader; Velero removes it too, after ten minutes
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), downloadCleanup)
		defer cancel()
		_ = cluster.Delete(ctx, request)
	}()
	err := wait.PollUntilContextCancel(ctx, downloadPoll, true, func(ctx context.Context) (bool, error) {
		err := cluster.Get(ctx, client.ObjectKeyFromObject(request), request)
		phase := request.Status.Phase
		return phase == velerov1.DownloadRequestPhaseProcessed || phase == k8s.DownloadRequestFailed, err
	})
	if err != nil {
		return 0, fmt.Errorf("wait for Velero to answer DownloadRequest %s/%s: %w", request.Namespace, request.Name, err)
	}
	if request.Status.Phase == k8s.DownloadRequestFailed {
		why, err := WhyNotSigned(ctx, cluster, request)
		return 0, errors.Join(fmt.Errorf("%w: DownloadRequest %s/%s: %s", errNotSigned, request.Namespace, request.Name, why), err)
	}
	return stall.FileAge(ctx, cluster, location, request.Status.DownloadURL)
}

var errNotSigned = errors.New("no URL from Velero")

// WhyNotSigned is what Velero says about a DownloadRequest in phase Failed. The types of Velero 1.18 have no field for it.
func WhyNotSigned(ctx context.Context, reader client.Reader, request *velerov1.DownloadRequest) (string, error) {
	answered := &unstructured.Unstructured{}
	answered.SetGroupVersionKind(velerov1.SchemeGroupVersion.WithKind("DownloadRequest"))
	_, err := k8s.Get(ctx, reader, "DownloadRequest", request.Namespace, request.Name, answered)
	why, _, _ := unstructured.NestedString(answered.Object, "status", "message")
	return check.Concealed(shorten.Text(cmp.Or(why, "it gives no reason"), maxErrorBytes)), err
}
