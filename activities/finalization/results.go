package finalization

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// author begins every line of ours in a restore's results, followed by the task's name.
	author = "holdfast "
	// maxVeleroErrors limits how many of Velero's errors the status repeats.
	maxVeleroErrors = 10
)

// Publish adds the tasks' lines to the restore's results in the object store, and returns Velero's messages there about the
// namespace. Doing it again writes nothing.
func Publish(ctx context.Context, c *Context, tasks []contract.PublishedLines) (contract.FinalizationPublished, error) {
	var published contract.FinalizationPublished
	store, err := c.Store(ctx)
	if err != nil {
		return published, c.publishProblem(&published, err)
	}
	results, err := store.RestoreResults(ctx, c.Restore.Name)
	if errors.Is(err, objectstore.ErrNotFound) {
		results, err = objectstore.Results{}, nil
	}
	if err != nil {
		return published, c.publishProblem(&published, err)
	}
	published.VeleroErrors = veleroErrors(results, c.NAR.Namespace)
	if !merge(results, c.NAR.Namespace, tasks) {
		return published, nil
	}
	c.Progress()
	if err := store.PutRestoreResults(ctx, c.Restore.Name, results); err != nil {
		return published, c.publishProblem(&published, err)
	}
	return published, nil
}

// publishProblem is storeProblem for Publish: a warning is in its result.
func (c *Context) publishProblem(published *contract.FinalizationPublished, err error) error {
	var found Findings
	if err := c.storeProblem(&found, err); err != nil {
		return err
	}
	published.Problem = strings.Join(append(found.Errors.Velero, found.Warnings.Velero...), "; ")
	return nil
}

// merge adds the tasks' lines to the results and reports whether any was new.
func merge(results objectstore.Results, namespace string, tasks []contract.PublishedLines) bool {
	changed := false
	for _, task := range tasks {
		for key, lines := range map[string]contract.FinalizationLines{
			objectstore.WarningsKey: task.Warnings, objectstore.ErrorsKey: task.Errors,
		} {
			result := objectstore.Result{Velero: lines.Velero, Cluster: lines.Cluster}
			if len(lines.Namespace) > 0 {
				result.Namespaces = map[string][]string{namespace: lines.Namespace}
			}
			changed = results.Replace(key, author+task.Task, result) || changed
		}
	}
	return changed
}

// veleroErrors are Velero's own errors about the namespace's objects. Other errors may be about what a tenant must not see:
// they are counted.
func veleroErrors(results objectstore.Results, namespace string) []string {
	all := results[objectstore.ErrorsKey]
	var errs []string
	for _, line := range all.Namespaces[namespace] {
		if strings.HasPrefix(line, author) || len(errs) == maxVeleroErrors {
			continue
		}
		errs = append(errs, shorten.Text(line, maxLineBytes))
	}
	others := 0
	for _, line := range slices.Concat(all.Velero, all.Cluster) {
		if !strings.HasPrefix(line, author) {
			others++
		}
	}
	if others > 0 {
		errs = append(errs, fmt.Sprintf("Velero had errors that are not about objects of this namespace: %d; "+
			"an administrator finds them in the restore's results", others))
	}
	return errs
}
