package tasks_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fdb/restore/tasks"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestTasksAreThoseOfTheContract(t *testing.T) {
	var names []string
	for _, task := range tasks.All() {
		names = append(names, task.Name())
		assert.NotEmpty(t, task.Summary())
		assert.Positive(t, task.Timeout())
	}
	assert.Equal(t, contract.FDBRestoreTasks(), names)
	_, err := tasks.Named("more")
	require.Error(t, err)
}

func TestWhatIsCheckedAfterARestore(t *testing.T) {
	const ours = "00ff"
	completed := &contract.FDBRestoreProgress{Tag: "t", UID: ours, State: "completed", Version: 7}
	free := restoretool.DatabaseStatus{Available: true, LockKnown: true}
	for title, tt := range map[string]struct {
		task               string
		restore            *contract.FDBRestoreProgress
		database           restoretool.DatabaseStatus
		trouble            *contract.FDBFailure
		waits, errs, warns bool
	}{
		"unlocked":                    {task: contract.FDBRestoreTaskUnlocked, restore: completed, database: free},
		"locked by this restore":      {task: contract.FDBRestoreTaskUnlocked, restore: completed, database: lockedBy(ours), waits: true},
		"locked by another":           {task: contract.FDBRestoreTaskUnlocked, restore: completed, database: lockedBy("11"), warns: true},
		"a lock that is not known":    {task: contract.FDBRestoreTaskUnlocked, restore: completed, waits: true},
		"no answer about the lock":    {task: contract.FDBRestoreTaskUnlocked, trouble: &contract.FDBFailure{Message: "hangs"}, waits: true},
		"the version":                 {task: contract.FDBRestoreTaskVersion, restore: completed, database: free},
		"another version":             {task: contract.FDBRestoreTaskVersion, restore: &contract.FDBRestoreProgress{State: "completed", Version: 8}, errs: true},
		"a version that is not shown": {task: contract.FDBRestoreTaskVersion, restore: &contract.FDBRestoreProgress{State: "completed"}, warns: true},
		"not completed":               {task: contract.FDBRestoreTaskVersion, restore: &contract.FDBRestoreProgress{State: "aborted", Version: 7}, errs: true},
		"no restore":                  {task: contract.FDBRestoreTaskVersion, errs: true},
		"no answer about the restore": {task: contract.FDBRestoreTaskVersion, trouble: &contract.FDBFailure{Message: "hangs"}, waits: true},
	} {
		t.Run(title, func(t *testing.T) {
			task, err := tasks.Named(tt.task)
			require.NoError(t, err)
			c := &tasks.Context{
				Plan: contract.FDBRestorePlan{Tag: "t", Version: 7},
				Status: func(context.Context, string) (*contract.FDBRestoreProgress, *contract.FDBFailure) {
					return tt.restore, tt.trouble
				},
				Database: func(context.Context) (restoretool.DatabaseStatus, *contract.FDBFailure) {
					return tt.database, tt.trouble
				},
			}
			found, err := task.Run(t.Context(), c)
			var notYet *activities.NotYetError
			assert.Equal(t, tt.waits, errors.As(err, &notYet), "%v", err)
			assert.Equal(t, tt.errs, found.Errors.Count() > 0)
			assert.Equal(t, tt.warns, found.Warnings.Count() > 0)

			c.Expired = true
			found, err = task.Run(t.Context(), c)
			require.NoError(t, err, "it waits no longer")
			assert.Equal(t, tt.errs || tt.waits, found.Errors.Count() > 0)
		})
	}
}

func lockedBy(uid string) restoretool.DatabaseStatus {
	return restoretool.DatabaseStatus{Available: true, LockKnown: true, LockUID: uid}
}
