package restore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// While the policy gives no turns a restore costs what it cost before there were any: these are the requests of that code.
func TestWithoutTurnsARestoreCostsWhatItDid(t *testing.T) {
	s := restoring(t)
	reads := map[string]int{}
	s.World.FailReads(func(object runtime.Object) error {
		reads[strings.TrimPrefix(fmt.Sprintf("%T", object), "*")]++
		return nil
	})
	for i, phase := range []velerov1.RestorePhase{"InProgress", "Failed"} {
		s.After(time.Duration(i+1)*time.Second, veleroRestore(phase))
	}
	runRestore(t, s)
	assert.Equal(t, map[string]int{
		"v1alpha1.NonAdminRestore": 4, "v1.Restore": 6, "v1alpha1.NonAdminBackup": 1, "v1.Backup": 1, "v1.BackupStorageLocation": 1,
	}, reads, "two of the Restores are Velero's")
	assert.Equal(t, []string{
		"patch status NonAdminRestore", "patch NonAdminRestore", "create Restore",
		"patch status NonAdminRestore", "patch status NonAdminRestore", "patch status NonAdminRestore",
	}, s.World.Writes())
}
