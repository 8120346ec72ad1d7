package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/workflows/contract"
)

// errNameTaken says that the name of a run is that of a NonAdminBackup of the tenant's own.
var errNameTaken = errors.New("a NonAdminBackup of that name exists and is no run of the plan")

// refusalPatience is how long the API server may refuse a run that it may accept later: one that starts refuses everything.
const refusalPatience = time.Minute

// refused says why a run or a drill will not be made; empty if it was, or if a retry may make it. late is how late it is. What is
// brief must not hold up the plan's runs, as a request, which has no deadline, or a drill: whatever the API server answers is a
// refusal after a minute.
func refused(err error, brief bool, late time.Duration) string {
	final := errors.Is(err, errNameTaken) || errors.Is(err, errDrillNameTaken) || activities.Refused(err)
	var answer apierrors.APIStatus
	patient := apierrors.IsForbidden(err) || (brief && errors.As(err, &answer)) // a quota, an admission webhook
	if final || (patient && late > refusalPatience) {
		return shorten.Text(err.Error(), maxRefused)
	}
	return ""
}

// make creates the NonAdminBackup of a due time. If one of its name exists that says it is the same run, an earlier attempt has
// made it.
func (a *Activities) make(ctx context.Context, s *subject, at time.Time) (*oadpv1alpha1.NonAdminBackup, error) {
	nab := build(s, at)
	err := a.Client.Create(ctx, nab)
	if err == nil {
		s.Backups = append(s.Backups, Backup{Object: nab, Made: true})
		return nab, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create NonAdminBackup %s: %w", client.ObjectKeyFromObject(nab), err)
	}
	found := &oadpv1alpha1.NonAdminBackup{}
	exists, err := k8s.Get(ctx, a.Client, oadpv1alpha1.KindNonAdminBackup, nab.Namespace, nab.Name, found)
	switch {
	case err != nil:
		return nil, err
	case exists && sameRun(found, nab):
		return found, nil
	}
	return nil, fmt.Errorf("create NonAdminBackup %s: %w", client.ObjectKeyFromObject(nab), errNameTaken)
}

// sameRun reports whether a NonAdminBackup is the run that was to be made. A tenant may have prepared it under that name; then it
// is what the plan would have made.
func sameRun(found, wanted *oadpv1alpha1.NonAdminBackup) bool {
	if found.Labels[holdfastv1alpha1.LabelPlan] != wanted.Labels[holdfastv1alpha1.LabelPlan] ||
		!equality.Semantic.DeepEqual(found.Spec.BackupSpec, wanted.Spec.BackupSpec) {
		return false
	}
	for _, key := range []string{holdfastv1alpha1.AnnotationPlanUID, holdfastv1alpha1.AnnotationDue} {
		if found.Annotations[key] != wanted.Annotations[key] {
			return false
		}
	}
	return true
}

// build is the NonAdminBackup of a run. The plan's own labels and annotations come last.
func build(s *subject, at time.Time) *oadpv1alpha1.NonAdminBackup {
	p := s.Plan
	template := p.Spec.Template.DeepCopy()
	nab := &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: contract.PlanRunName(p.Name, at),
			Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec: oadpv1alpha1.NonAdminBackupSpec{BackupSpec: template.Spec.BackupSpec},
	}
	maps.Copy(nab.Labels, template.Metadata.Labels)
	maps.Copy(nab.Annotations, template.Metadata.Annotations)
	nab.Labels[holdfastv1alpha1.LabelPlan] = p.Name
	delete(nab.Labels, holdfastv1alpha1.LabelDefaultPlan)
	if p.Labels[holdfastv1alpha1.LabelDefaultPlan] != "" {
		nab.Labels[holdfastv1alpha1.LabelDefaultPlan] = holdfastv1alpha1.LabelDefaultPlanValue
	}
	nab.Annotations[holdfastv1alpha1.AnnotationPlanUID] = string(p.UID)
	nab.Annotations[holdfastv1alpha1.AnnotationDue] = at.UTC().Format(time.RFC3339)
	if ttl, enforced := s.judge.ttl(s.Objects); !enforced {
		nab.Spec.BackupSpec.TTL = metav1.Duration{Duration: ttl}
	}
	return nab
}
