package activitytest

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/activities/fake"
)

// Signature is the secret part of a signed URL.
const Signature = "X-Amz-Signature=5ec2e7"

// Storage is an object store that has held the contents of a backup for a while, or answers with another status.
type Storage struct {
	Age     time.Duration
	Status  int
	Bare    bool // without Last-Modified
	Request *http.Request
}

func (s *Storage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Request = r
	if s.Status != 0 {
		http.Error(w, "no", s.Status)
		return
	}
	if !s.Bare {
		w.Header().Set("Last-Modified", time.Now().Add(-s.Age).UTC().Format(http.TimeFormat))
	}
	_, _ = w.Write([]byte("contents"))
}

// DownloadRequests returns the existing Velero DownloadRequests.
func DownloadRequests(t *testing.T, w *fake.World) []velerov1.DownloadRequest {
	t.Helper()
	var list velerov1.DownloadRequestList
	require.NoError(t, w.Client.List(t.Context(), &list))
	return list.Items
}
