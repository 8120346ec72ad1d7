package drill

import (
	"context"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/drill/gather"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
	"holdfast.dev/holdfast/workflows/contract"
)

// podSecurity is the level of a drill's namespace unless the policy's template says otherwise.
const (
	podSecurityLabel = "pod-security.kubernetes.io/enforce"
	podSecurity      = "restricted"
)

// tooLarge is why a drill is refused whose object leaves no room for its status.
var tooLarge = fmt.Sprintf("the RestoreDrill has more than %d KiB: create one with a smaller Job, for example one that reads "+
	"its script from a ConfigMap of the backup", gather.MaxBytes>>10)

// Admit judges a drill by the policy and by the backup, and writes what it will do: which backup it restores, and which checks it
// makes. One that is refused is over.
func (a *Activities) Admit(ctx context.Context, o *objects, _ contract.DrillStep) error {
	if !o.stays() || o.Drill.Status.Backup != "" || o.Drill.Status.Concluded != nil {
		return activities.ErrUnchanged
	}
	rules, err := a.rules(ctx)
	if err != nil {
		return err
	}
	chosen, partial, why, err := a.choose(ctx, o.Drill, rules)
	if err != nil {
		return err
	}
	if o.View().Oversized {
		why = tooLarge
	}
	return a.patch(ctx, o, func() {
		if why != "" {
			o.refuse(why)
			return
		}
		o.admit(chosen, rules.Drills)
		if partial {
			add(&o.Drill.Status, holdfastv1alpha1.CheckObjects, notVerified(
				"the backup is PartiallyFailed: what Velero could not back up is not in it"))
		}
	})
}

func (a *Activities) rules(ctx context.Context) (policy.Policy, error) {
	rules, err := a.Restores.Policy.Get(ctx)
	if err != nil {
		return rules, fmt.Errorf("read the admin's policy: %w", err)
	}
	return rules, nil
}

// choose returns the NonAdminBackup to restore and whether that is PartiallyFailed, or why there is none.
func (a *Activities) choose(
	ctx context.Context, drill *holdfastv1alpha1.RestoreDrill, rules policy.Policy,
) (chosen *oadpv1alpha1.NonAdminBackup, partial bool, why string, err error) {
	backup := drill.Spec.BackupName
	if name := drill.Spec.PlanName; name != "" {
		plan := &holdfastv1alpha1.BackupPlan{}
		exists, err := k8s.Get(ctx, a.Client, holdfastv1alpha1.KindBackupPlan, drill.Namespace, name, plan)
		switch {
		case err != nil:
			return nil, false, "", err
		case !exists:
			return nil, false, fmt.Sprintf("there is no BackupPlan %q in this namespace", name), nil
		case plan.Status.LastGood == nil:
			return nil, false, fmt.Sprintf("BackupPlan %q has no good backup: create another drill when it has", name), nil
		}
		backup = plan.Status.LastGood.Name
	}
	if longest := rules.Drills.TimeoutLimit(); gather.DurationOf(drill.Spec.Timeout) > longest {
		return nil, false, fmt.Sprintf("spec.timeout is %s; the administrator allows %s (drills.maxTimeout)",
			drill.Spec.Timeout, longest), nil
	}
	restoring, why, err := a.restoring(ctx, drill, backup, rules)
	if err == nil && why == "" && len(checksOf(&drill.Spec.Checks, restoring.drill.Rules)) == 0 {
		why = "none of spec.checks can be made: the cluster enforces no NetworkPolicy, so that nothing runs in a drill"
	}
	if job := drill.Spec.Checks.Job; why == "" && job != nil {
		if _, problem := gather.JobTemplate(job); problem != nil {
			why = fmt.Sprintf("spec.checks.job.template cannot be used: %v", problem)
		}
	}
	partial = restoring.source.Backup != nil && restoring.source.Backup.Status.Phase == velerov1.BackupPhasePartiallyFailed
	return restoring.source.NAB, partial, why, err
}

// restoring is what is restored, and how.
type restoring struct {
	source restorespec.Source
	drill  restorespec.Drill
}

// restoring reads what the Velero Restore is made from, or says why the backup cannot be restored.
func (a *Activities) restoring(
	ctx context.Context, drill *holdfastv1alpha1.RestoreDrill, backup string, rules policy.Policy,
) (r restoring, why string, err error) {
	if !rules.Drills.Enabled {
		return r, drillsOff, nil
	}
	if problems := check.NameProblems(backup); len(problems) > 0 {
		return r, fmt.Sprintf("%q is not a valid name of a NonAdminBackup", backup), nil
	}
	if r.source, err = a.Restores.SourceOf(ctx, drill.Namespace, backup); err != nil {
		return r, "", err
	}
	if why = r.source.Unfit(drill.Namespace, backup); why != "" {
		return r, why + "; a drill does not wait for that: create another one", nil
	}
	allowlist, err := a.Restores.Allowlists.Allowlist(ctx, rules.RestoreFromTenantsLocations)
	switch {
	case err != nil:
		return r, "", err
	case allowlist.Problem != "":
		return r, "nothing can be restored for a drill now: " + allowlist.Problem, nil
	}
	name := a.name(drill)
	r.drill = restorespec.Drill{
		From: drill.Namespace, Mark: restorespec.Mark{Into: name, OADPNamespace: a.Gatherer.OADPNamespace, By: name},
		Allowlist: allowlist, Rules: rules.Drills,
	}
	return r, "", nil
}

// checksOf are the names of the checks that are made, in their order.
func checksOf(wanted *holdfastv1alpha1.DrillChecks, rules policy.Drills) (names []string) {
	if wanted.Objects == nil || *wanted.Objects {
		names = append(names, holdfastv1alpha1.CheckObjects)
	}
	if (wanted.WorkloadsReady == nil || *wanted.WorkloadsReady) && !rules.WithoutNetworkPolicies {
		names = append(names, holdfastv1alpha1.CheckWorkloads)
	}
	if wanted.Job != nil && !rules.WithoutNetworkPolicies {
		names = append(names, holdfastv1alpha1.CheckJob)
	}
	return names
}

// admit writes what the drill will do.
func (o *objects) admit(backup *oadpv1alpha1.NonAdminBackup, rules policy.Drills) {
	status := &o.Drill.Status
	status.Phase, status.Namespace = holdfastv1alpha1.DrillPreparing, o.Name
	status.Backup, status.BackupUID = backup.Name, backup.UID
	for _, name := range checksOf(&o.Drill.Spec.Checks, rules) {
		status.Checks = append(status.Checks, holdfastv1alpha1.DrillCheck{Name: name, Result: holdfastv1alpha1.DrillPending})
	}
	if rules.WithoutNetworkPolicies {
		add(status, holdfastv1alpha1.CheckWorkloads, notVerified(
			"workloads, and the data of volumes, which need them, are not restored, and no Job is run: "+
				"the cluster enforces no NetworkPolicy"))
	}
	setVerified(o.Drill, metav1.ConditionUnknown, holdfastv1alpha1.ReasonDrillRunning, running)
}

// drillsOff is why no drill begins while the policy does not enable them.
const drillsOff = "the administrator's policy allows no drills (drills.enabled)"

// describeNamespace reads what the policy says about the namespace while that is still to be made.
func (a *Activities) describeNamespace(ctx context.Context, o *objects) error {
	if !o.stays() || o.Drill.Status.Backup == "" || o.Drill.Status.Started != nil || o.Drill.Status.Concluded != nil {
		return nil
	}
	rules, err := a.rules(ctx)
	if err != nil {
		return err
	}
	o.off = !rules.Drills.Enabled
	template := rules.Drills.NamespaceTemplate
	o.Wanted = contract.DrillNamespace{
		Labels: map[string]string{podSecurityLabel: podSecurity}, Annotations: template.Annotations,
		Quota: rules.Drills.Quota(), MaxActive: rules.Drills.ActiveLimit(), TenantsMayLook: rules.Drills.TenantsMayLook,
		DNS: rules.Drills.DNS,
	}
	for key, value := range template.Labels {
		o.Wanted.Labels[key] = value
	}
	return nil
}
