package tenant

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/starter/tenant/progress"
)

func (o *options) planCommands() []*cobra.Command {
	return []*cobra.Command{
		o.runPlanCommand(), o.getCommand(plans),
		o.pausePlanCommand("pause", "Make no backups by the plan's schedule until it is resumed", true),
		o.pausePlanCommand("resume", "Make backups by the plan's schedule again", false),
	}
}

// patchPlan patches a plan that is there and returns what became of it.
func (o *options) patchPlan(
	command *cobra.Command, name, format string, args ...any,
) (*cluster, *holdfastv1alpha1.BackupPlan, error) {
	if err := validName("plan", name); err != nil {
		return nil, nil, err
	}
	to, err := o.cluster()
	if err != nil {
		return nil, nil, err
	}
	plan := &holdfastv1alpha1.BackupPlan{}
	plan.Namespace, plan.Name = to.namespace, name
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))
	if err := to.Patch(command.Context(), plan, patch); err != nil {
		return nil, nil, to.explain(plans, "change", name, err)
	}
	return to, plan, nil
}

func (o *options) pausePlanCommand(use, short string, paused bool) *cobra.Command {
	return &cobra.Command{
		Use: use + " NAME", Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: o.one(plans),
		RunE: func(command *cobra.Command, args []string) error {
			_, plan, err := o.patchPlan(command, args[0], `{"spec":{"paused":%t}}`, paused)
			if err != nil {
				return err
			}
			fmt.Fprintf(o.Out, "%s %sd\n", plans.said(plan.Name), use)
			by := plan.Status.Paused
			if !paused && (by == holdfastv1alpha1.PausedByOperator || by == holdfastv1alpha1.PausedByBoth) {
				fmt.Fprintln(o.ErrOut, "an operator has paused it in Temporal, too: it makes no backups until the operator resumes it")
			}
			return nil
		},
	}
}

func (o *options) runPlanCommand() *cobra.Command {
	var w waiting
	command := &cobra.Command{
		Use: "run NAME", Short: "Have a plan make a backup now",
		Args: cobra.ExactArgs(1), ValidArgsFunction: o.one(plans),
		RunE: func(command *cobra.Command, args []string) error {
			if err := w.validate(command.Flags()); err != nil {
				return err
			}
			runNow := time.Now().UTC().Format(time.RFC3339Nano)
			from, plan, err := o.patchPlan(command, args[0], `{"metadata":{"annotations":{%q:%q}}}`,
				holdfastv1alpha1.AnnotationRunNow, runNow)
			if err != nil {
				return err
			}
			fmt.Fprintf(o.Out, "%s run requested\n", plans.said(plan.Name))
			if !w.wait {
				return nil
			}
			return o.awaitRun(command, &w, from, plan, runNow)
		},
	}
	w.bind(command.Flags())
	return command
}

// awaitRun waits for the backup that a plan makes on request, and then for its end.
func (o *options) awaitRun(
	command *cobra.Command, w *waiting, from *cluster, plan *holdfastv1alpha1.BackupPlan, runNow string,
) error {
	var name, lastBefore string
	if last := plan.Status.LastRun; last != nil {
		lastBefore = last.Name
	}
	state, err := o.follow(command, w, from, plans, plan, func(object client.Object) (state progress.State) {
		name, state = progress.RunOf(object.(*holdfastv1alpha1.BackupPlan), runNow, lastBefore)
		return state
	})
	switch {
	case errors.Is(err, progress.ErrGone):
		return gone("plan " + plan.Name)
	case err != nil:
		return left(command, "the run stays requested; its backup will be in: kubectl holdfast backup get -n "+from.namespace, err)
	case state.Outcome == progress.Bad:
		return ended(StatusBad, "plan "+plan.Name+" "+state.String())
	}
	object, err := from.get(command, backups, name)
	if err != nil {
		return err
	}
	return o.await(command, w, from, backups, object)
}
