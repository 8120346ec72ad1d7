package defaultplans

import (
	"context"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/planspec"
	"holdfast.dev/holdfast/workflows/contract"
)

// Activities gives namespaces the administrator's plans.
type Activities struct {
	// Events in it are on the policy's ConfigMap.
	activities.Cluster
	Policy        policy.Getter
	OADPNamespace string
}

// Register registers the activity with a worker under its wire name.
func (a *Activities) Register(registry worker.ActivityRegistry) {
	activities.RegisterGuarded(registry, a.Paused, contract.KeepDefaultPlans, a.Keep)
}

// pass is one run of the activity.
type pass struct {
	*Activities
	contract.DefaultPlansResult
	// marked are the plans that bear the mark, by namespace and name. What is still there at the end is wanted no more.
	marked map[client.ObjectKey]*holdfastv1alpha1.BackupPlan
}

// Keep gives each namespace the plans that select it. A plan that bears the mark and that no rule wants is deleted; its backups
// stay. What the API server refuses in one namespace is noted, and the others get theirs.
func (a *Activities) Keep(ctx context.Context, _ contract.ScheduledInput) (contract.DefaultPlansResult, error) {
	p := &pass{Activities: a}
	rules, err := a.Policy.Get(ctx)
	if err != nil {
		return p.DefaultPlansResult, fmt.Errorf("read the administrator's policy: %w", err)
	}
	if err := p.listMarked(ctx); err != nil || (len(rules.DefaultPlans) == 0 && len(p.marked) == 0) {
		return p.DefaultPlansResult, err
	}
	namespaces, err := activities.ListMetadata(ctx, a.Client, corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err != nil {
		return p.DefaultPlansResult, err
	}
	for i := range namespaces {
		if err := p.serve(ctx, &namespaces[i], rules.DefaultPlans); err != nil {
			return p.DefaultPlansResult, err
		}
	}
	for _, plan := range p.marked {
		if err := p.remove(ctx, plan); err != nil {
			return p.DefaultPlansResult, err
		}
	}
	if p.Problem != "" {
		document := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.OADPNamespace, Name: policy.ConfigMapName}}
		a.Record(document, corev1.EventTypeWarning, "DefaultPlanProblem", "KeepDefaultPlans", "%s", p.Problem)
	}
	return p.DefaultPlansResult, nil
}

func (p *pass) listMarked(ctx context.Context) error {
	list := &holdfastv1alpha1.BackupPlanList{}
	if err := p.Client.List(ctx, list, client.HasLabels{holdfastv1alpha1.LabelDefaultPlan}); err != nil {
		return fmt.Errorf("list the default BackupPlans: %w", err)
	}
	p.marked = map[client.ObjectKey]*holdfastv1alpha1.BackupPlan{}
	for i := range list.Items {
		p.marked[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
	}
	return nil
}

// serve gives one namespace its plans. Velero's own has no tenant.
func (p *pass) serve(ctx context.Context, namespace *metav1.PartialObjectMetadata, plans []policy.DefaultPlan) error {
	if namespace.Name == p.OADPNamespace || !namespace.DeletionTimestamp.IsZero() {
		return nil
	}
	for _, each := range plans {
		if !each.Selects(namespace.Labels) {
			continue
		}
		activity.RecordHeartbeat(ctx)
		key := client.ObjectKey{Namespace: namespace.Name, Name: each.Name}
		existing := p.marked[key]
		delete(p.marked, key)
		var err error
		if existing == nil {
			err = p.create(ctx, key, each.Spec)
		} else {
			err = p.change(ctx, existing, each.Spec)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) create(ctx context.Context, key client.ObjectKey, spec holdfastv1alpha1.BackupPlanSpec) error {
	plan := &holdfastv1alpha1.BackupPlan{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels: map[string]string{
				holdfastv1alpha1.LabelDefaultPlan: holdfastv1alpha1.LabelDefaultPlanValue, velerov1.ExcludeFromBackupLabel: "true",
			},
		},
		Spec: *spec.DeepCopy(),
	}
	err := p.Client.Create(ctx, plan)
	switch {
	case err == nil:
		p.Created++
	case apierrors.IsAlreadyExists(err):
		p.Taken++
		p.note(fmt.Sprintf("default plan %s: a tenant has a plan of that name", key))
	default:
		return p.refused(key, err)
	}
	return nil
}

// change has a plan be as the policy says. No backup holds it: a restore would bring what the policy no longer gives.
func (p *pass) change(ctx context.Context, plan *holdfastv1alpha1.BackupPlan, spec holdfastv1alpha1.BackupPlanSpec) error {
	if plan.Labels[velerov1.ExcludeFromBackupLabel] == "true" &&
		equality.Semantic.DeepEqual(planspec.Defaulted(plan.Spec), planspec.Defaulted(spec)) {
		return nil
	}
	plan.Labels[velerov1.ExcludeFromBackupLabel] = "true"
	plan.Spec = *spec.DeepCopy()
	if err := p.Client.Update(ctx, plan); err != nil { // with the resourceVersion read
		return p.refused(client.ObjectKeyFromObject(plan), err)
	}
	p.Changed++
	return nil
}

func (p *pass) remove(ctx context.Context, plan *holdfastv1alpha1.BackupPlan) error {
	if !plan.DeletionTimestamp.IsZero() {
		return nil
	}
	err := p.Client.Delete(ctx, plan, client.Preconditions{UID: &plan.UID, ResourceVersion: &plan.ResourceVersion})
	if err == nil {
		p.Deleted++
		return nil
	}
	return p.refused(client.ObjectKeyFromObject(plan), err)
}

// refused goes on after what concerns one plan alone; other errors are retried.
func (p *pass) refused(key client.ObjectKey, err error) error {
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // the next pass sees what it is like then
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		p.Refused++
		p.note(fmt.Sprintf("default plan %s: %v", key, err))
		return nil
	}
	return fmt.Errorf("default plan %s: %w", key, err)
}

func (p *pass) note(problem string) {
	if p.Problem == "" {
		p.Problem = problem
	}
}
