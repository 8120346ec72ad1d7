package download

import (
	"context"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

// Gatherer reads one NonAdminDownloadRequest and all that belongs to it. Reader is the API server in the worker, the cache in
// the watcher.
type Gatherer struct {
	Reader        client.Reader
	ClusterID     string
	OADPNamespace string
	// Now returns the time, that of the machine if nil.
	Now func() time.Time
}

// Objects is one NonAdminDownloadRequest and what belongs to it, as read. The objects are the reader's own: copy before
// changing.
type Objects struct {
	// NADR is nil if no object of the requested UID exists.
	NADR *oadpv1alpha1.NonAdminDownloadRequest
	// Request is the Velero DownloadRequest made for it, which may outlive it; nil when absent.
	Request *velerov1.DownloadRequest
	// Foreign: a DownloadRequest of the required name exists and belongs to something else.
	Foreign bool
	// Verdict on the present target; nil if it does not matter any more.
	Verdict *Verdict
	// At is when all this was read.
	At time.Time

	requestName string
}

// Gather reads the objects. An error means that one could not be read, never that something is absent or invalid.
func (g *Gatherer) Gather(ctx context.Context, ref contract.ObjectRef) (*Objects, error) {
	objects := &Objects{At: g.now(), requestName: RequestName(ref.UID)}
	if err := g.findRequest(ctx, ref, objects); err != nil {
		return nil, err
	}
	nadr := &oadpv1alpha1.NonAdminDownloadRequest{}
	err := g.Reader.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, nadr)
	if apierrors.IsNotFound(err) || (err == nil && string(nadr.UID) != ref.UID) {
		return objects, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get NonAdminDownloadRequest %s: %w", ref, err)
	}
	objects.NADR = nadr
	if !nadr.DeletionTimestamp.IsZero() || objects.expired() || answered(nadr) {
		return objects, nil
	}
	verdict, err := g.judge(ctx, objects)
	if err != nil {
		return nil, err
	}
	objects.Verdict = &verdict
	return objects, nil
}

func (g *Gatherer) now() time.Time {
	if g.Now != nil {
		return g.Now()
	}
	return time.Now()
}

// findRequest reads the Velero DownloadRequest of the name for ref. It counts only if it also names ref as its origin.
func (g *Gatherer) findRequest(ctx context.Context, ref contract.ObjectRef, o *Objects) error {
	found := &velerov1.DownloadRequest{}
	exists, err := k8s.Get(ctx, g.Reader, "Velero DownloadRequest", g.OADPNamespace, o.requestName, found)
	switch {
	case err != nil || !exists:
		return err
	case owner.Download.Names(found, ref.Namespace, ref.Name):
		o.Request = found
	default:
		o.Foreign = true
	}
	return nil
}
