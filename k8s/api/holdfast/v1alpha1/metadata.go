package v1alpha1

import "strings"

// KindBackupPlan is the kind of a BackupPlan, as it appears in manifests, Events and object references.
const KindBackupPlan = "BackupPlan"

// ResourceBackupPlans is the plural resource name.
const ResourceBackupPlans = "backupplans"

// Every kind of this package is in one of these lists, by its resource. It adds itself, in its file.
var (
	// Configuration is what tenants want back with a restore, without what Holdfast has recorded of it.
	Configuration []string
	// Requests are never restored: each would be carried out again.
	Requests []string
)

const (
	// LabelPlan on a NonAdminBackup is the name of the BackupPlan that made it. A tenant can write it too, so it proves nothing.
	LabelPlan = "holdfast.dev/plan"
	// LabelHold on a NonAdminBackup, with the value "true", keeps it from the plan's retention.
	LabelHold = "holdfast.dev/hold"
	// LabelHoldValue is the only value of LabelHold that counts.
	LabelHoldValue = "true"
	// LabelUsual on a NonAdminBackup, with the value "true", says that it holds what its plan's backups hold from now on, although
	// those before it hold more.
	LabelUsual = "holdfast.dev/usual"
	// LabelUsualValue is the only value of LabelUsual that counts.
	LabelUsualValue = "true"
	// LabelDefaultPlan marks, with any value, a BackupPlan that the administrator's policy has given to its namespace. Nobody but
	// Holdfast may change such a plan. The mark gives the plan no rights. On a NonAdminBackup it says that such a plan made it.
	LabelDefaultPlan = "holdfast.dev/default-plan"
	// LabelDefaultPlanValue is the value of LabelDefaultPlan.
	LabelDefaultPlanValue = "true"
	// AnnotationPlanUID on a NonAdminBackup is the UID of the BackupPlan that made it.
	AnnotationPlanUID = "holdfast.dev/plan-uid"
	// AnnotationDue on a NonAdminBackup is when it was due, in RFC 3339 and UTC.
	AnnotationDue = "holdfast.dev/due"
	// AnnotationRunNow on a BackupPlan requests a run each time that its value changes, of which the first MaxRunNow bytes count.
	AnnotationRunNow = "holdfast.dev/run-now"
	// LabelRecordedPlan on a Velero Backup is the UID of the BackupPlan that made its NonAdminBackup. Tenants cannot write it: it
	// decides what a plan's retention may delete.
	LabelRecordedPlan = "holdfast.dev/recorded-plan-uid"
	// AnnotationRecordedPlan beside it is the name of that BackupPlan. Velero stores both with the backup: by them a plan that was
	// restored finds its backups.
	AnnotationRecordedPlan = "holdfast.dev/recorded-plan"
	// AnnotationRecordedDue beside it is when the backup was due, in RFC 3339 and UTC.
	AnnotationRecordedDue = "holdfast.dev/recorded-due"
	// AnnotationDigests on a Velero Backup says whether Holdfast has recorded digests of its objects: DigestsDue, DigestsRecorded,
	// or why there are none.
	AnnotationDigests = "holdfast.dev/digests"
	// DigestsDue says that they are recorded when Velero has completed the backup.
	DigestsDue = "due"
	// DigestsRecorded says that they are in ConfigMap `<name of the Velero Backup>-digests`.
	DigestsRecorded = "recorded"
)

// MaxRunNow is how many bytes of the value of AnnotationRunNow count: it is copied to the status, and caches keep no more.
const MaxRunNow = 128

// RequestedRun is the value of AnnotationRunNow, as far as it counts; empty if no run was requested.
func RequestedRun(annotations map[string]string) string {
	value := annotations[AnnotationRunNow]
	if len(value) > MaxRunNow {
		value = strings.ToValidUTF8(value[:MaxRunNow], "")
	}
	return value
}
