package check_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"holdfast.dev/holdfast/k8s/policy/check"
)

func TestNumbersThatVeleroTakesWithoutLooking(t *testing.T) {
	minus := metav1.Duration{Duration: -time.Hour}
	for name, test := range map[string]struct {
		spec any
		want string
	}{
		"an empty spec": {&velerov1.BackupSpec{}, ""},
		"no spec":       {(*velerov1.RestoreSpec)(nil), ""},
		"what is usual": {&velerov1.BackupSpec{
			TTL: metav1.Duration{Duration: 720 * time.Hour}, UploaderConfig: &velerov1.UploaderConfigForBackup{ParallelFilesUpload: 16},
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "-1"}},
		}, ""},
		"a ttl":             {&velerov1.BackupSpec{TTL: minus}, "spec.ttl must not be negative: -1h0m0s"},
		"a snapshot's time": {&velerov1.BackupSpec{CSISnapshotTimeout: minus}, "spec.csiSnapshotTimeout must not be negative: -1h0m0s"},
		"an operation's":    {&velerov1.RestoreSpec{ItemOperationTimeout: minus}, "spec.itemOperationTimeout must not be negative: -1h0m0s"},
		"files, fewer than 0": {
			&velerov1.BackupSpec{UploaderConfig: &velerov1.UploaderConfigForBackup{ParallelFilesUpload: -1}},
			"spec.uploaderConfig.parallelFilesUpload must not be negative: -1",
		},
		"more files at once than the node agent can bear": {
			&velerov1.RestoreSpec{UploaderConfig: &velerov1.UploaderConfigForRestore{ParallelFilesDownload: 1_000_000_000}},
			"spec.uploaderConfig.parallelFilesDownload must be at most 256: 1000000000",
		},
		"a hook's": {
			&velerov1.BackupSpec{Hooks: velerov1.BackupHooks{Resources: []velerov1.BackupResourceHookSpec{{}, {
				PreHooks: []velerov1.BackupResourceHook{{Exec: &velerov1.ExecHook{Timeout: minus}}},
			}}}},
			"spec.hooks.resources[1].pre[0].exec.timeout must not be negative: -1h0m0s",
		},
		"a restore hook's": {
			&velerov1.RestoreSpec{Hooks: velerov1.RestoreHooks{Resources: []velerov1.RestoreResourceHookSpec{{
				PostHooks: []velerov1.RestoreResourceHook{
					{Init: &velerov1.InitRestoreHook{InitContainers: []runtime.RawExtension{{Raw: []byte(`{"a":-1}`)}}}},
					{Exec: &velerov1.ExecRestoreHook{WaitTimeout: minus}},
				},
			}}}},
			"spec.hooks.resources[0].postHooks[1].exec.waitTimeout must not be negative: -1h0m0s",
		},
	} {
		none := reflect.Zero(reflect.TypeOf(test.spec)).Interface()
		assert.Equal(t, test.want, check.BadNumber("spec", test.spec, none), name)
	}
}

// What an administrator enforces is the administrator's choice, also of the number of files.
func TestTheBoundOfParallelFilesIsTheTenants(t *testing.T) {
	backup := &velerov1.BackupSpec{UploaderConfig: &velerov1.UploaderConfigForBackup{ParallelFilesUpload: 512}}
	restore := &velerov1.RestoreSpec{UploaderConfig: &velerov1.UploaderConfigForRestore{ParallelFilesDownload: 512}}
	const tooMany = "parallelFilesUpload must be at most 256: 512"
	assert.Contains(t, check.BadNumber("spec", backup, &velerov1.BackupSpec{TTL: metav1.Duration{Duration: time.Hour}}), tooMany)
	assert.Empty(t, check.BadNumber("spec", backup, backup))
	assert.NotEmpty(t, check.BadNumber("spec", restore, &velerov1.RestoreSpec{}))
	assert.Empty(t, check.BadNumber("spec", restore, restore))
	backup.TTL.Duration = -time.Hour
	assert.NotEmpty(t, check.BadNumber("spec", backup, backup), "what means nothing does so from anybody")
}
