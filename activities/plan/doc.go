// Package plan serves BackupPlans: it keeps their Schedules, makes their NonAdminBackups, records on Velero Backups which plan
// has made them, deletes what no rule keeps, and writes their status.
//
// The worker registers its activities for the workflow BackupPlan. It decides by workflows/plan.
package plan

// +kubebuilder:rbac:groups=holdfast.dev,resources=backupplans,verbs=get;list
// +kubebuilder:rbac:groups=holdfast.dev,resources=backupplans/status,verbs=patch
// +kubebuilder:rbac:groups=holdfast.dev,resources=restoredrills,verbs=get;list;create;delete
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminbackups,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadminrestores;nonadmindownloadrequests,verbs=list
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=backups,verbs=get;list;patch
