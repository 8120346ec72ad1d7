package synchronization

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// maxDue is how long a time in RFC 3339 may be.
const maxDue = 64

// RecordedPlan is the name of the plan that has made the backup, as the store says; empty if none has.
func RecordedPlan(made *velerov1.Backup) string {
	name := made.Annotations[holdfastv1alpha1.AnnotationRecordedPlan]
	if made.Labels[holdfastv1alpha1.LabelRecordedPlan] == "" || len(validation.IsDNS1123Subdomain(name)) > 0 ||
		len(validation.IsValidLabelValue(name)) > 0 {
		return ""
	}
	return name
}

// PlanIsProven reports whether a plan may count the backup again by what the store says. In a tenant's location, anyone with
// its key can write that: by backups that count there, the plan would delete good ones elsewhere. One that was given up, and
// is given back, is the tenant's own.
func PlanIsProven(made *velerov1.Backup, location *Location) bool {
	return !location.Tenants && State(made) != StateReleased && broughtBack(made)
}

// OfPlan has a NonAdminBackup say that it is a run of the plan of that name. uid is that of the present plan, empty if there is
// none. Like all that a NonAdminBackup says of a plan it proves nothing: the plan decides by its record.
func OfPlan(nab *oadpv1alpha1.NonAdminBackup, made *velerov1.Backup, name, uid string) {
	nab.Labels[holdfastv1alpha1.LabelPlan] = name
	if due := made.Annotations[holdfastv1alpha1.AnnotationRecordedDue]; len(due) <= maxDue {
		metav1.SetMetaDataAnnotation(&nab.ObjectMeta, holdfastv1alpha1.AnnotationDue, due)
	}
	if uid != "" {
		metav1.SetMetaDataAnnotation(&nab.ObjectMeta, holdfastv1alpha1.AnnotationPlanUID, uid)
	}
}
