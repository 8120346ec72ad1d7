package tasks

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/finalization"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/workflows/contract"
)

// Task is one part of what follows a restore.
type Task = finalization.TaskOf[*Context]

// Context is what tasks need.
type Context struct {
	// Plan is what was to be restored.
	Plan contract.FDBRestorePlan
	// Expired: the task may not wait any longer.
	Expired bool
	// Status queries the state of a tag; nil if there never was a restore on it.
	Status func(ctx context.Context, tag string) (*contract.FDBRestoreProgress, *contract.FDBFailure)
	// Database queries the state of the database itself.
	Database func(ctx context.Context) (restoretool.DatabaseStatus, *contract.FDBFailure)
}

// All returns the tasks in the order in which they run.
func All() []Task { return []Task{unlockedTask{}, versionTask{}} }

var errUnknownTask = errors.New("unknown task")

// Named returns the task of that name.
func Named(name string) (Task, error) {
	for _, task := range All() {
		if task.Name() == name {
			return task, nil
		}
	}
	return nil, fmt.Errorf("%w %q", errUnknownTask, name)
}

// taskTimeout limits one attempt: two queries of the destination, with their limits.
const taskTimeout = time.Minute

// unlockedTask verifies that the restore has unlocked the destination.
type unlockedTask struct{}

// Name implements Task.
func (unlockedTask) Name() string { return contract.FDBRestoreTaskUnlocked }

// Summary implements Task.
func (unlockedTask) Summary() string { return "Verify that the restore has unlocked the database" }

// Timeout implements Task.
func (unlockedTask) Timeout() time.Duration { return taskTimeout }

// Run implements Task.
func (unlockedTask) Run(ctx context.Context, c *Context) (finalization.Findings, error) {
	progress, trouble := c.Status(ctx, c.Plan.Tag)
	if trouble != nil {
		return c.unanswered(trouble)
	}
	database, trouble := c.Database(ctx)
	switch {
	case trouble != nil:
		return c.unanswered(trouble)
	case !database.LockKnown:
		return c.wait("the database to report whether it is locked", "the database does not report whether it is locked")
	case database.LockUID == "":
		return finalization.Findings{}, nil
	case progress != nil && progress.UID == database.LockUID:
		return c.wait("the database to be unlocked", "the database is still locked by this restore (%s): unlock it with fdbcli",
			database.LockUID)
	}
	found := finalization.Findings{}
	found.Warnings.Cluster = []string{fmt.Sprintf("the database is locked, not by this restore but by %s", database.LockUID)}
	return found, nil
}

// versionTask verifies that the planned version is what was restored, so that the status may say so.
type versionTask struct{}

// Name implements Task.
func (versionTask) Name() string { return contract.FDBRestoreTaskVersion }

// Summary implements Task.
func (versionTask) Summary() string { return "Verify which version was restored, to record it" }

// Timeout implements Task.
func (versionTask) Timeout() time.Duration { return taskTimeout }

// Run implements Task.
func (versionTask) Run(ctx context.Context, c *Context) (finalization.Findings, error) {
	progress, trouble := c.Status(ctx, c.Plan.Tag)
	switch {
	case trouble != nil:
		return c.unanswered(trouble)
	case progress == nil:
		return failing("the destination no longer knows the restore on tag %s", c.Plan.Tag)
	case !restoretool.Completed(progress.State):
		return failing("the restore on tag %s is %s, not %s", c.Plan.Tag,
			restoretool.Observed(progress.State), fdbv1alpha1.RestoreCompleted)
	case progress.Version == 0: // another wording of the tool; the command named the version
		found := finalization.Findings{}
		found.Warnings.Cluster = []string{"FoundationDB does not say which version was restored; the command named " +
			strconv.FormatInt(c.Plan.Version, 10)}
		return found, nil
	case progress.Version != c.Plan.Version:
		return failing("version %d was restored instead of %d", progress.Version, c.Plan.Version)
	}
	return finalization.Findings{}, nil
}

// unanswered: the destination could not be queried.
func (c *Context) unanswered(trouble *contract.FDBFailure) (finalization.Findings, error) {
	return c.wait("the database to answer: "+trouble.Message, "the database could not be queried: %s", trouble.Message)
}

// wait returns an error that lets the task run again, or a finding once it has waited long enough.
func (c *Context) wait(forWhat, format string, values ...any) (finalization.Findings, error) {
	if c.Expired {
		return failing(format, values...)
	}
	return finalization.Findings{}, &activities.NotYetError{For: forWhat}
}

func failing(format string, values ...any) (finalization.Findings, error) {
	found := finalization.Findings{}
	found.Errors.Cluster = []string{fmt.Sprintf(format, values...)}
	return found, nil
}
