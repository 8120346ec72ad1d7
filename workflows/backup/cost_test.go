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
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

// countReads counts the reads from now on, by what is read.
func countReads(w *fake.World) map[string]int {
	reads := map[string]int{}
	w.FailReads(func(object runtime.Object) error {
		reads[strings.TrimPrefix(fmt.Sprintf("%T", object), "*")]++
		return nil
	})
	return reads
}

// While the policy gives no turns a backup costs what it cost before there were any: these are the requests of that code.
func TestWithoutTurnsABackupCostsWhatItDid(t *testing.T) {
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
	reads := countReads(s.World)
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

// A deletion is announced with the read that finds it requested, and the object released with the one that finds the Velero Backup gone.
func TestADeletionReadsLittle(t *testing.T) {
	s := workflowtest.NewScenario(t, fake.NAB(workflowtest.Backup))
	s.After(time.Second, workflowtest.Velero("Completed"))
	runBackup(t, s)
	s.World.EditSpec(workflowtest.Backup, deleteBackup)

	before := len(s.World.Writes())
	again := scenarioIn(t, s.World)
	ran, reads := ran(again), countReads(s.World)
	again.After(time.Second, func(w *fake.World) { w.AnswerRequests("") })
	runBackup(t, again)
	assert.Equal(t, map[string]int{contract.RefreshBackup.Name: 2, contract.RequestDeletion.Name: 1}, ran)
	assert.Equal(t, map[string]int{
		"v1alpha1.NonAdminBackup": 4, "v1alpha1.NonAdminRestoreList": 1, "v1.PartialObjectMetadata": 3, // the namespace
		"v1.Backup": 4, "v1.DeleteBackupRequestList": 4, // one of each is Velero's
	}, reads)
	assert.Equal(t, []string{
		"delete NonAdminBackup", "patch status NonAdminBackup", "create DeleteBackupRequest", "patch status NonAdminBackup",
		"delete Backup", "delete DeleteBackupRequest", // Velero's
		"patch NonAdminBackup",
	}, s.World.Writes()[before:])
	assert.Nil(t, s.World.Read(workflowtest.Backup))
}
