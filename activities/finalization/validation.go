package finalization

import (
	"context"
	"fmt"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/restored"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
)

// validationTask checks whether the restored objects work: claims are bound, workloads become ready within the limit, and
// nothing of the backup is missing. It changes nothing.
type validationTask struct{}

// Name implements Task.
func (validationTask) Name() string { return "validation" }

// Summary implements Task.
func (validationTask) Summary() string {
	return "Check whether volumes are bound, workloads ready, and nothing is missing"
}

// Timeout implements Task.
func (validationTask) Timeout() time.Duration { return 2 * time.Minute }

// Run implements Task.
func (validationTask) Run(ctx context.Context, c *Context) (Findings, error) {
	var found Findings
	states, err := c.objects().States(ctx)
	if err != nil {
		return found, err
	}
	var waits []string
	for _, state := range states {
		switch {
		case state.Broken:
			add(&found.Errors.Namespace, "%s %s", state.Object, state.Problem)
		case state.Problem != "" && c.Expired:
			add(&found.Warnings.Namespace, "%s %s", state.Object, state.Problem)
		case state.Problem != "":
			waits = append(waits, state.Object)
		}
	}
	if len(waits) > 0 {
		return found, &activities.NotYetError{For: summed(waits)}
	}
	comparison, err := c.compare(ctx)
	if err != nil {
		return found, c.storeProblem(&found, err)
	}
	if c.fromTenantsLocation() {
		filtered(comparison).describe(&found)
	}
	for _, object := range comparison.Comparison.Missing() {
		add(&found.Warnings.Namespace, "%s is in the backup and was not restored", object)
	}
	return found, nil
}

// fromTenantsLocation: Holdfast has made a modifier for the restore.
func (c *Context) fromTenantsLocation() bool {
	modifier := c.Restore.Spec.ResourceModifier
	return modifier != nil && modifier.Name == c.Restore.Name
}

// summed names the first of some objects, and how many more there are.
func summed(objects []string) string {
	const named = 3
	text := strings.Join(objects[:min(named, len(objects))], ", ")
	if more := len(objects) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// comparison is what is needed to find missing objects, and those that were left out.
type comparison struct {
	restored.Comparison

	asked    *velerov1.RestoreSpec // the tenant's own
	shadowed map[string]string     // resources that the restore left out for a namesake, with that
}

// compare reads the lists of the backup and of the restore.
func (c *Context) compare(ctx context.Context) (comparison, error) {
	spec := c.Restore.Spec
	compared := comparison{
		Comparison: restored.Comparison{Namespace: c.NAR.Namespace, Into: c.NAR.Namespace, Spec: &spec},
		asked:      c.NAR.Spec.RestoreSpec,
		shadowed:   restorespec.ReadShadowed(c.Restore.Annotations[restorespec.ShadowedAnnotation]),
	}
	if compared.asked == nil { // unreadable, since an edit
		compared.asked = &velerov1.RestoreSpec{}
	}
	if compared.Selects() && !c.fromTenantsLocation() {
		return compared, nil
	}
	store, err := c.Store(ctx)
	if err != nil {
		return compared, err
	}
	return compared, compared.Read(ctx, store, c.Restore.Name, c.Progress)
}
