package backup_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

// While the policy gives no turns a backup costs what it cost before there were any: these are the requests of that code.
func TestWithoutTurnsABackupCostsWhatItDid(t *testing.T) {
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
	reads := map[string]int{}
	s.World.FailReads(func(object runtime.Object) error {
		reads[strings.TrimPrefix(fmt.Sprintf("%T", object), "*")]++
		return nil
	})
	for i, phase := range []velerov1.BackupPhase{"InProgress", "Finalizing", "Completed"} {
		s.After(time.Duration(i+1)*time.Second, workflowtest.Velero(phase))
	}
	runBackup(t, s)
	assert.Equal(t, map[string]int{"v1alpha1.NonAdminBackup": 4, "v1.Backup": 6}, reads, "three of them are Velero's")
	assert.Equal(t, []string{
		"patch NonAdminBackup", "create Backup", "patch status NonAdminBackup",
		"patch status NonAdminBackup", "patch status NonAdminBackup", "patch status NonAdminBackup",
	}, s.World.Writes())
}
