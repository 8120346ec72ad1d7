package velero

import (
	"context"
	"errors"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	downloadPoll    = 100 * time.Millisecond
	downloadCleanup = 2 * time.Second
	// StallLookup is how long a check may take, retries after conflicts included. It leaves time for the clean-up within the
	// workflow's limit of ten seconds.
	StallLookup = 7 * time.Second
)

// Stalled reports whether Velero has finished the Backup or Restore that was made for a tenant's object without writing it
// there: it retries its patch to the next phase for about 40 seconds and then never again (Velero #7207). The file that it
// writes before that patch has then been in the object store for half the timeout. An error means that it could not be found
// out now.
func Stalled(ctx context.Context, cluster client.Client, object, made client.Object, timeout time.Duration) (bool, error) {
	if StateOf(PhaseOf(made)) != StateInProgress {
		return false, nil
	}
	age, err := lastFileAge(ctx, cluster, object, made)
	if err != nil {
		return false, fmt.Errorf("check whether Velero has finished %s/%s: %w", made.GetNamespace(), made.GetName(), err)
	}
	return age >= timeout/2, nil
}

// lastFileAge is the time since Velero wrote the contents of a Backup, or the results of a Restore; zero if they are not there.
func lastFileAge(ctx context.Context, cluster client.Client, object, made client.Object) (time.Duration, error) {
	restore, is := made.(*velerov1.Restore)
	if !is {
		request := NewDownloadRequest(object, made, velerov1.DownloadTargetKindBackupContents)
		return storedAge(ctx, cluster, made.(*velerov1.Backup).Spec.StorageLocation, request)
	}
	source, key := &velerov1.Backup{}, types.NamespacedName{Namespace: made.GetNamespace(), Name: restore.Spec.BackupName}
	if err := cluster.Get(ctx, key, source); err != nil {
		return 0, fmt.Errorf("get Velero Backup %s: %w", key, err)
	}
	request := NewDownloadRequest(object, made, velerov1.DownloadTargetKindRestoreResults)
	return storedAge(ctx, cluster, source.Spec.StorageLocation, request)
}

// storedAge is the time since the requested file was written, zero if it does not exist. It uses a URL that Velero signs for a
// DownloadRequest, so that the credentials of the storage location are not needed.
func storedAge(
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
		return phase == velerov1.DownloadRequestPhaseProcessed || phase == DownloadRequestFailed, err
	})
	if err != nil {
		return 0, fmt.Errorf("wait for Velero to answer DownloadRequest %s/%s: %w", request.Namespace, request.Name, err)
	}
	if request.Status.Phase == DownloadRequestFailed {
		why, err := WhyNotSigned(ctx, cluster, request)
		return 0, errors.Join(fmt.Errorf("%w: DownloadRequest %s/%s: %s", errNotSigned, request.Namespace, request.Name, why), err)
	}
	return fileAge(ctx, cluster, location, request.Status.DownloadURL)
}

var errNotSigned = errors.New("no URL from Velero")
