package download

import (
	"crypto/sha256"
	"encoding/hex"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// Conceal puts a digest in the place of the signed URL in either kind of request. Whoever judges needs to know that there is
// one, and nobody who keeps many of them needs one.
func Conceal(object any) (any, error) {
	switch object := object.(type) {
	case *oadpv1alpha1.NonAdminDownloadRequest:
		if answer := object.Status.VeleroDownloadRequest.Status; answer != nil {
			answer.DownloadURL = digest(answer.DownloadURL)
		}
		object.ManagedFields = nil
	case *velerov1.DownloadRequest:
		object.Status.DownloadURL = digest(object.Status.DownloadURL)
		object.ManagedFields = nil
	}
	return object, nil
}

func digest(url string) string {
	if url == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(url))
	return hex.EncodeToString(sum[:])
}
