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
	// StallLookup leaves time for the clean-up within the workflow's limit of ten seconds.
	StallLookup = 7 * time.Second
)

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
