package download

import (
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

const requestPrefix = "nadr-"

// RequestName is the name of the Velero DownloadRequest for the NonAdminDownloadRequest of that UID.
func RequestName(uid string) string { return requestPrefix + uid }

// NewRequest builds the Velero DownloadRequest for a NonAdminDownloadRequest. The name is deterministic: a second creation ends
// in AlreadyExists.
func NewRequest(
	nadr *oadpv1alpha1.NonAdminDownloadRequest, oadpNamespace string, target velerov1.DownloadTarget,
) *velerov1.DownloadRequest {
	uid := string(nadr.UID)
	return &velerov1.DownloadRequest{
		ObjectMeta: owner.Download.Meta(nadr, uid, oadpNamespace, RequestName(uid)),
		Spec:       velerov1.DownloadRequestSpec{Target: target},
	}
}

// OriginOf names the NonAdminDownloadRequest for which a Velero DownloadRequest was made, even if it no longer exists. It is
// false if the request was made for something else.
func OriginOf(request *velerov1.DownloadRequest) (contract.ObjectRef, bool) {
	key, named := owner.Download.Named(request)
	uid, ours := strings.CutPrefix(request.Name, requestPrefix)
	ref := contract.ObjectRef{Namespace: key.Namespace, Name: key.Name, UID: uid}
	return ref, named && ours
}
