package finalization

import (
	"context"
	"errors"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/restored"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/workflows/contract"
)

// Task is one part of the work that follows a restore of Velero.
type Task = TaskOf[*Context]

// TaskOf is one part of the work that follows a restore. Context holds what it needs, which depends on what was restored.
type TaskOf[Context any] interface {
	// Name is its name in the status, the restore's results and metrics. It never changes.
	Name() string
	// Summary describes it for people.
	Summary() string
	// Timeout limits one attempt. Waiting is no part of an attempt.
	Timeout() time.Duration
	// Run does the work and returns its findings. Any part of it may have been done before, by an attempt whose result is lost.
	// An *activities.NotYetError means that it waits, any other error that a retry may succeed: it runs again. A problem that no
	// retry solves, or that is left when the context has expired, is a finding.
	Run(ctx context.Context, c Context) (Findings, error)
}

// Tasks returns the tasks in the order in which they run.
func Tasks() []Task {
	return []Task{
		volumesTask{},
		cleanupTask{},
		validationTask{},
	}
}

// Context is what tasks need.
type Context struct {
	// Client reads and writes at the API server itself.
	Client client.Client
	// NAR is the tenant's object, Restore the Velero Restore made for it.
	NAR     *oadpv1alpha1.NonAdminRestore
	Restore *velerov1.Restore
	// Expired: the task must not wait any longer.
	Expired bool
	// Progress is called between steps.
	Progress func()
	// OpenStore opens the object store of the restored backup. It is called at most once.
	OpenStore func(context.Context) (*objectstore.Store, error)

	store *objectstore.Store
}

// Close releases what tasks have opened.
func (c *Context) Close() error {
	if c.store == nil {
		return nil
	}
	return c.store.Close()
}

// Store returns the object store of the restored backup.
func (c *Context) Store(ctx context.Context) (*objectstore.Store, error) {
	if c.store == nil {
		c.Progress()
		store, err := c.OpenStore(ctx)
		if err != nil {
			return nil, err
		}
		c.store = store
	}
	c.Progress()
	return c.store, nil
}

// Limits of what one task can report: all of it goes through Temporal's history.
const (
	maxLines     = 200
	maxLineBytes = 300
)

// Findings are a task's warnings and errors.
type Findings struct {
	Warnings, Errors contract.FinalizationLines
	// LeftOut and Refused count the objects that a restore from a tenant's storage location left out, and those that the API
	// server refused.
	LeftOut, Refused int
	// Shadowed names kinds that were left out for a namesake.
	Shadowed []string
}

// add appends a line, or counts it if there are too many.
func add(lines *[]string, text string, args ...any) {
	if len(*lines) < maxLines {
		*lines = append(*lines, shorten.Text(fmt.Sprintf(text, args...), maxLineBytes))
		return
	}
	last := &(*lines)[maxLines-1]
	var more int
	if _, err := fmt.Sscanf(*last, moreLines, &more); err != nil {
		more = 1 // the line that makes room
	}
	*last = fmt.Sprintf(moreLines, more+1)
}

const moreLines = "and %d more"

// storeProblem decides about a file that could not be read: a warning if a retry cannot succeed, an error if the task must not
// wait any longer, else another attempt.
func (c *Context) storeProblem(found *Findings, err error) error {
	var problem *objectstore.Error
	var notYet *activities.NotYetError
	switch {
	case errors.As(err, &notYet) && c.Expired:
		add(&found.Errors.Velero, "the backup's files could not be read in time: it waited for %s", notYet.For)
	case !errors.As(err, &problem):
		return err // the API server's
	case errors.Is(err, objectstore.ErrUnusable), errors.Is(err, objectstore.ErrNotFound):
		add(&found.Warnings.Velero, "%s", problem)
	case c.Expired:
		add(&found.Errors.Velero, "%s", problem)
	default:
		return err
	}
	return nil
}

// objects are those that Velero has created for the restore.
func (c *Context) objects() *restored.Objects {
	return &restored.Objects{Client: c.Client, Namespace: c.NAR.Namespace, Restore: c.Restore.Name, Progress: c.Progress}
}
