package location_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/activities/location"
)

// As object stores answer, each time with other IDs.
func TestAMessageIsWithoutWhatEachRequestSaysAnew(t *testing.T) {
	tests := map[string]struct{ message, want string }{
		"S3": {
			"operation error S3: ListObjectsV2, https response error StatusCode: 403, RequestID: 17A4, HostID: dd9b/+c=, api error " +
				"AccessDenied: Access Denied.",
			"operation error S3: ListObjectsV2, https response error StatusCode: 403, api error AccessDenied: Access Denied.",
		},
		"S3, the IDs empty": {
			"StatusCode: 403, RequestID: , HostID: , api error InvalidAccessKeyId: no such key",
			"StatusCode: 403, api error InvalidAccessKeyId: no such key",
		},
		"Azure": {
			"RESPONSE 403: 403 Forbidden\nERROR CODE: AuthenticationFailed\nRequestId:7b1c-44\nTime:2026-08-01T12:00:00.1Z\nServer failed",
			"RESPONSE 403: 403 Forbidden\nERROR CODE: AuthenticationFailed\nServer failed",
		},
		"neither": {
			`Backup store contains invalid top-level directories: [guest id: 5]`,
			`Backup store contains invalid top-level directories: [guest id: 5]`,
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			assert.Equal(t, test.want, location.PlainMessage(velerov1.BackupStorageLocationStatus{Message: test.message}))
		})
	}
}
