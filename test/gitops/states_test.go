package gitops

import (
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// generation of all objects of the table.
const generation = 3

// situation is a state of an object, and what the tools are to make of it.
type situation struct {
	object  client.Object
	kstatus status.Status
	// suspended: Argo CD has a word of its own for what waits for a person.
	suspended bool
}

// argo is the health that Argo CD has for what kstatus calls so.
func (s situation) argo() string {
	switch {
	case s.suspended:
		return "Suspended"
	case s.kstatus == status.CurrentStatus:
		return "Healthy"
	case s.kstatus == status.FailedStatus:
		return "Degraded"
	}
	return "Progressing"
}

const (
	current    = status.CurrentStatus
	inProgress = status.InProgressStatus
	failed     = status.FailedStatus
)

func states() map[string]situation {
	all := map[string]situation{}
	for _, some := range []map[string]situation{backups(), restores(), locations(), downloads(), plans(), drills(), foundationDBs()} {
		for title, s := range some {
			all[title] = s
		}
	}
	return all
}

func condition(kind, is, reason string) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: metav1.ConditionStatus(is), Reason: reason, Message: "because of " + reason,
		ObservedGeneration: generation, LastTransitionTime: metav1.Now().Rfc3339Copy(),
	}
}

var (
	accepted = condition("Accepted", "True", "BackupAccepted")
	queued   = condition("Queued", "True", "BackupScheduled")

	restoreAccepted = condition("Accepted", "True", "RestoreAccepted")
	restoreQueued   = condition("Queued", "True", "RestoreScheduled")
)

func backup(phase oadpv1alpha1.NonAdminPhase, veleros velerov1.BackupPhase, conditions ...metav1.Condition) client.Object {
	nab := &oadpv1alpha1.NonAdminBackup{}
	nab.Status.Phase, nab.Status.Conditions = phase, conditions
	if veleros != "" {
		nab.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{Status: &velerov1.BackupStatus{Phase: veleros, FailureReason: "disk full"}}
	}
	return nab
}

func backups() map[string]situation {
	older := func(of metav1.Condition) metav1.Condition {
		of.ObservedGeneration--
		return of
	}
	all := map[string]situation{
		"a backup that is seen":       {object: backup("New", ""), kstatus: inProgress},
		"a backup that is accepted":   {object: backup("New", "", accepted), kstatus: inProgress},
		"an edited backup":            {object: backup("Created", "Completed", older(accepted), older(queued)), kstatus: inProgress},
		"a refused backup":            {object: backup("BackingOff", "", condition("Accepted", "False", "InvalidBackupSpec")), kstatus: failed},
		"a backup beyond the quota":   {object: backup("BackingOff", "", condition("Accepted", "False", "QuotaExceeded")), kstatus: inProgress},
		"a backup without a turn":     {object: backup("New", "", accepted, condition("Queued", "False", "WaitingForTurn")), kstatus: inProgress},
		"a backup that Velero has":    {object: backup("Created", "", accepted, queued), kstatus: inProgress},
		"a backup that is lost":       {object: backup("Created", "InProgress", accepted, queued, condition("VeleroStalled", "True", "VeleroFinalStatusLost")), kstatus: failed},
		"a backup that has expired":   {object: backup("Created", "Completed", condition("Accepted", "False", "VeleroBackupNotFound"), queued), kstatus: failed},
		"a backup made invalid later": {object: backup("Created", "Completed", condition("Accepted", "False", "InvalidBackupSpec"), queued), kstatus: failed},
		"a backup deleted alone":      {object: backup("Deleting", "Completed", accepted, queued, condition("Deleting", "True", "DeletionPending")), kstatus: failed},
	}
	copying := func(phase velerov1.BackupPhase, is, reason string, expected status.Status) situation {
		return situation{object: backup("Created", phase, accepted, queued, condition("VolumesCopied", is, reason)), kstatus: expected}
	}
	all["a backup whose volumes are being copied"] = copying("WaitingForPluginOperations", "False", "Copying", inProgress)
	all["a backup whose volumes are copied"] = copying("Completed", "True", "Copied", current)
	all["a backup whose volumes could not be copied"] = copying("PartiallyFailed", "False", "CopyFailed", failed)
	deleted := backup("Deleting", "Completed", accepted, queued, condition("Deleting", "True", "DeletionPending")).(*oadpv1alpha1.NonAdminBackup)
	deleted.Spec.DeleteBackup = true
	all["a backup deleted with its data"] = situation{object: deleted, kstatus: inProgress}
	phases := map[velerov1.BackupPhase]status.Status{
		"New": inProgress, "Queued": inProgress, "ReadyToStart": inProgress, "InProgress": inProgress,
		"WaitingForPluginOperations": inProgress, "WaitingForPluginOperationsPartiallyFailed": inProgress,
		"Finalizing": inProgress, "FinalizingPartiallyFailed": inProgress, "Deleting": inProgress, "OfANewerVelero": inProgress,
		"Cancelling": inProgress, "Cancelled": failed,
		"Completed": current, "PartiallyFailed": failed, "Failed": failed, "FailedValidation": failed,
	}
	for phase, is := range phases {
		all["a backup that Velero has in phase "+string(phase)] = situation{object: backup("Created", phase, accepted, queued), kstatus: is}
	}
	return all
}

func restores() map[string]situation {
	restore := func(phase velerov1.RestorePhase, after string, verdict ...metav1.Condition) client.Object {
		nar := &oadpv1alpha1.NonAdminRestore{}
		nar.Status.Phase, nar.Status.Conditions = "Created", []metav1.Condition{restoreAccepted, restoreQueued}
		if len(verdict) > 0 {
			nar.Status.Conditions = append([]metav1.Condition{restoreQueued}, verdict...)
		}
		nar.Status.VeleroRestore = &oadpv1alpha1.VeleroRestore{Status: &velerov1.RestoreStatus{Phase: phase}}
		switch after {
		case "":
		case "Finalizing":
			nar.Status.Conditions = append(nar.Status.Conditions, condition("Finalized", "False", after))
		default:
			nar.Status.Conditions = append(nar.Status.Conditions, condition("Finalized", "True", "Finalization"+after))
		}
		return nar
	}
	expired := condition("Accepted", "False", oadpv1alpha1.ReasonVeleroRestoreNotFound)
	filtered := condition("Filtered", "True", oadpv1alpha1.ReasonNotAllowedFromTenantsLocation)
	refused := &oadpv1alpha1.NonAdminRestore{}
	refused.Status.Phase = "BackingOff"
	refused.Status.Conditions = []metav1.Condition{condition("Accepted", "False", "InvalidRestoreSpec")}
	return map[string]situation{
		"a restore that has expired":               {object: restore("Completed", "Completed", expired), kstatus: current},
		"a restore that was removed while it ran":  {object: restore("InProgress", "", expired), kstatus: failed},
		"a refused restore":                        {object: refused, kstatus: failed},
		"a restore that left something out":        {object: restore("Completed", "Completed", restoreAccepted, filtered), kstatus: current},
		"a restore of another controller":          {object: restore("Completed", ""), kstatus: current},
		"a restore in progress":                    {object: restore("InProgress", ""), kstatus: inProgress},
		"a restore that is being finalized":        {object: restore("Completed", "Finalizing"), kstatus: inProgress},
		"a restore that is over":                   {object: restore("Completed", "Completed"), kstatus: current},
		"a restore whose finalization had errors":  {object: restore("Completed", "PartiallyFailed"), kstatus: failed},
		"a restore with errors, finalizing":        {object: restore("PartiallyFailed", "Finalizing"), kstatus: inProgress},
		"a restore with errors":                    {object: restore("PartiallyFailed", "PartiallyFailed"), kstatus: failed},
		"a restore that failed":                    {object: restore("Failed", ""), kstatus: failed},
		"a restore that Velero has not understood": {object: restore("FailedValidation", ""), kstatus: failed},
	}
}

func locations() map[string]situation {
	location := func(phase oadpv1alpha1.NonAdminPhase, veleros velerov1.BackupStorageLocationPhase, conditions ...metav1.Condition) client.Object {
		nabsl := &oadpv1alpha1.NonAdminBackupStorageLocation{}
		nabsl.Status.Phase, nabsl.Status.Conditions = phase, conditions
		if veleros != "" {
			nabsl.Status.VeleroBackupStorageLocation = &oadpv1alpha1.VeleroBackupStorageLocation{
				Status: &velerov1.BackupStorageLocationStatus{Phase: veleros, Message: "no such bucket"},
			}
		}
		return nabsl
	}
	valid, approved := condition("Accepted", "True", "BslSpecValidation"), condition("ClusterAdminApproved", "True", "BslSpecApproved")
	pending := condition("ClusterAdminApproved", "False", "BslSpecApprovalPending")
	return map[string]situation{
		"a location that is seen":           {object: location("New", ""), kstatus: inProgress},
		"a refused location":                {object: location("BackingOff", "", condition("Accepted", "False", "BslSpecValidation")), kstatus: failed},
		"a location that waits for consent": {object: location("BackingOff", "", valid, pending), kstatus: inProgress, suspended: true},
		"a rejected location":               {object: location("BackingOff", "", valid, condition("ClusterAdminApproved", "False", "BslSpecRejected")), kstatus: failed},
		"a location that cannot be carried": {object: location("BackingOff", "", valid, condition("ClusterAdminApproved", "False", "BslSpecInvalid")), kstatus: failed},
		"a location whose change is rejected": {object: location("Created", "Available", valid, approved,
			condition("SpecUpdateApproved", "False", "BslSpecUpdateRejected")), kstatus: failed},
		"a location that cannot be made": {object: location("Created", "", valid, approved, condition("SecretSynced", "True", "SecretUpdated"),
			condition("BackupStorageLocationSynced", "False", "BackupStorageLocationSyncError")), kstatus: failed},
		"a location without a credential": {object: location("Created", "Available", valid, approved, condition("SecretSynced", "False", "SecretSyncFailed")), kstatus: failed},
		"a location not validated yet":    {object: location("Created", "", valid, approved), kstatus: inProgress},
		"an available location": {object: location("Created", "Available", valid, approved, condition("SecretSynced", "True", "SecretCreated"),
			condition("BackupStorageLocationSynced", "True", "BackupStorageLocationCreated")), kstatus: current},
		"an updated location": {object: location("Created", "Available", valid, approved,
			condition("BackupStorageLocationSynced", "True", "BackupStorageLocationUpdated")), kstatus: current},
		"an unavailable location":          {object: location("Created", "Unavailable", valid, approved), kstatus: failed},
		"a location that is being deleted": {object: location("Deleting", "Available", valid, approved), kstatus: inProgress},
	}
}

func downloads() map[string]situation {
	download := func(conditions ...metav1.Condition) client.Object {
		nadr := &oadpv1alpha1.NonAdminDownloadRequest{}
		nadr.Status.Conditions = conditions
		return nadr
	}
	return map[string]situation{
		"a download that is seen":      {object: download(), kstatus: inProgress},
		"a download that is requested": {object: download(condition("Processed", "False", "Requested")), kstatus: inProgress},
		"a download with its URL":      {object: download(condition("Processed", "True", "Success")), kstatus: current},
		"a download of nothing":        {object: download(condition("NonAdminBackupNotAvailable", "True", "Error")), kstatus: failed},
	}
}

func plans() map[string]situation {
	plan := func(conditions ...metav1.Condition) client.Object {
		p := &holdfastv1alpha1.BackupPlan{}
		p.Status.Conditions, p.Status.ObservedGeneration = conditions, generation
		return p
	}
	ready := condition("Ready", "True", holdfastv1alpha1.ReasonScheduled)
	all := map[string]situation{
		"a plan without its Schedule":        {object: plan(condition("Ready", "Unknown", holdfastv1alpha1.ReasonUnscheduled)), kstatus: inProgress},
		"a plan that is scheduled":           {object: plan(ready), kstatus: current},
		"a plan that keeps too long":         {object: plan(condition("Ready", "True", holdfastv1alpha1.ReasonKeepExceedsTTL)), kstatus: current},
		"a plan that cannot be carried":      {object: plan(condition("Ready", "False", holdfastv1alpha1.ReasonInvalid)), kstatus: failed},
		"a plan whose drills cannot be made": {object: plan(condition("Ready", "True", holdfastv1alpha1.ReasonDrillInvalid)), kstatus: current},
		"a plan whose drills are too many":   {object: plan(condition("Ready", "True", holdfastv1alpha1.ReasonDrillForbidden)), kstatus: current},
		"a plan that is not allowed":         {object: plan(condition("Ready", "False", holdfastv1alpha1.ReasonForbidden)), kstatus: failed},
	}
	// The results of its backups say nothing about the plan itself.
	for _, reason := range []string{
		holdfastv1alpha1.ReasonMet, holdfastv1alpha1.ReasonStale, holdfastv1alpha1.ReasonNeverSucceeded,
		holdfastv1alpha1.ReasonVerificationStale, holdfastv1alpha1.ReasonNeverVerified,
		holdfastv1alpha1.ReasonUnknown, holdfastv1alpha1.ReasonPaused,
	} {
		all["a plan with the objective "+reason] = situation{object: plan(ready, condition("ObjectiveMet", "False", reason)), kstatus: current}
	}
	for _, reason := range []string{holdfastv1alpha1.ReasonUsual, holdfastv1alpha1.ReasonFarLess, holdfastv1alpha1.ReasonEmpty} {
		all["a plan with the content "+reason] = situation{object: plan(ready, condition("ContentUsual", "False", reason)), kstatus: current}
	}
	return all
}

func drills() map[string]situation {
	drill := func(is, reason string, more ...metav1.Condition) client.Object {
		d := &holdfastv1alpha1.RestoreDrill{}
		d.Status.Conditions = slices.Concat(more, []metav1.Condition{condition(holdfastv1alpha1.ConditionVerified, is, reason)})
		d.Status.ObservedGeneration = generation
		return d
	}
	all := map[string]situation{
		"a drill that is seen":  {object: &holdfastv1alpha1.RestoreDrill{}, kstatus: inProgress},
		"a drill that restores": {object: drill("Unknown", holdfastv1alpha1.ReasonDrillRunning), kstatus: inProgress},
		"a drill without a turn": {object: drill("Unknown", holdfastv1alpha1.ReasonDrillRunning,
			condition(holdfastv1alpha1.ConditionQueued, "False", holdfastv1alpha1.ReasonWaitingForTurn)), kstatus: inProgress},
		"a drill that says nothing about its backup": {object: drill("Unknown", holdfastv1alpha1.ReasonNotVerified), kstatus: failed},
	}
	for _, reason := range []string{holdfastv1alpha1.ReasonVerified, holdfastv1alpha1.ReasonVerifiedInPart} {
		all["a drill of a backup that is "+reason] = situation{object: drill("True", reason), kstatus: current}
	}
	for _, reason := range []string{holdfastv1alpha1.ReasonChecksFailed, holdfastv1alpha1.ReasonRestoreFailed} {
		all["a drill of a backup with "+reason] = situation{object: drill("False", reason), kstatus: failed}
	}
	return all
}

func foundationDBs() map[string]situation {
	backup := func(conditions ...metav1.Condition) client.Object {
		b := &fdbv1alpha1.FoundationDBBackup{}
		b.Status.Conditions, b.Status.ObservedGeneration = conditions, generation
		return b
	}
	restore := func(conditions ...metav1.Condition) client.Object {
		r := &fdbv1alpha1.FoundationDBRestore{}
		r.Status.Conditions, r.Status.ObservedGeneration = conditions, generation
		return r
	}
	drill := func(is, reason string) client.Object {
		d := &fdbv1alpha1.FoundationDBDrill{}
		d.Status.Conditions = []metav1.Condition{condition(holdfastv1alpha1.ConditionVerified, is, reason)}
		d.Status.ObservedGeneration = generation
		return d
	}
	ready := func(is, reason string) metav1.Condition { return condition("Ready", is, reason) }
	all := map[string]situation{
		"a FoundationDBBackup as its spec says":  {object: backup(ready("True", fdbv1alpha1.ReasonReconciled)), kstatus: current},
		"a FoundationDBRestore that is complete": {object: restore(ready("True", fdbv1alpha1.ReasonCompleted)), kstatus: current},
		"a FoundationDBDrill that restores":      {object: drill("Unknown", holdfastv1alpha1.ReasonDrillRunning), kstatus: inProgress},
		"a FoundationDBDrill that was refused":   {object: drill("Unknown", holdfastv1alpha1.ReasonNotVerified), kstatus: failed},
		"a FoundationDBDrill that has verified":  {object: drill("True", holdfastv1alpha1.ReasonVerified), kstatus: current},
		"a FoundationDBDrill that has failed":    {object: drill("False", holdfastv1alpha1.ReasonChecksFailed), kstatus: failed},
		"a FoundationDBBackup that begins": {object: backup(ready("False", fdbv1alpha1.ReasonInitialSnapshot),
			condition(fdbv1alpha1.ConditionIncorrectBackupState, "True", fdbv1alpha1.ReasonInitialSnapshot)), kstatus: inProgress},
	}
	for is, reasons := range notReady {
		for _, reason := range reasons {
			all["a FoundationDBBackup with the reason "+reason] = situation{object: backup(ready("False", reason)), kstatus: is}
			all["a FoundationDBRestore with the reason "+reason] = situation{object: restore(ready("False", reason)), kstatus: is}
		}
	}
	for _, reason := range []string{fdbv1alpha1.ReasonClusterUnreachable, fdbv1alpha1.ReasonStateUnknown, fdbv1alpha1.ReasonNoWorker} {
		all["a FoundationDBBackup of which is unknown: "+reason] = situation{object: backup(ready("Unknown", reason)), kstatus: inProgress}
	}
	return all
}

// notReady are the reasons of a FoundationDB object's Ready that is False: those that pass, and those for which somebody has to act.
var notReady = map[status.Status][]string{
	inProgress: {
		fdbv1alpha1.ReasonDeleting, fdbv1alpha1.ReasonDeploymentMissing, fdbv1alpha1.ReasonDeploymentDiffers,
		fdbv1alpha1.ReasonAgentsNotReady, fdbv1alpha1.ReasonNotRunning, fdbv1alpha1.ReasonNotStopped, fdbv1alpha1.ReasonNotPaused,
		fdbv1alpha1.ReasonNotResumed, fdbv1alpha1.ReasonWaitingForSlot, fdbv1alpha1.ReasonWaitingForAgents,
		fdbv1alpha1.ReasonInitialSnapshot, fdbv1alpha1.ReasonRestarting, fdbv1alpha1.ReasonParametersDiffer,
		fdbv1alpha1.ReasonClusterMissing, fdbv1alpha1.ReasonClusterNotReady, fdbv1alpha1.ReasonToolFailing,
		fdbv1alpha1.ReasonLastStartInFuture, fdbv1alpha1.ReasonNotStarted, fdbv1alpha1.ReasonRestoring, fdbv1alpha1.ReasonNotAborted,
		fdbv1alpha1.ReasonDataBusy, fdbv1alpha1.ReasonDatabaseLocked, fdbv1alpha1.ReasonBackupMissing, fdbv1alpha1.ReasonNotRestorable,
		fdbv1alpha1.ReasonNoAgents,
	},
	failed: {
		fdbv1alpha1.ReasonDeploymentNotOurs, fdbv1alpha1.ReasonTemplateInvalid, fdbv1alpha1.ReasonDeploymentRefused,
		fdbv1alpha1.ReasonSnapshotStalled, fdbv1alpha1.ReasonPauseDisagreement, fdbv1alpha1.ReasonTagTaken,
		fdbv1alpha1.ReasonDataMissing, fdbv1alpha1.ReasonExpiryFailing, fdbv1alpha1.ReasonSecretMissing,
		fdbv1alpha1.ReasonCredentialsInvalid, fdbv1alpha1.ReasonDestinationInvalid, fdbv1alpha1.ReasonKeyRangesInvalid,
		fdbv1alpha1.ReasonContainerUsed, fdbv1alpha1.ReasonToolsMissing, fdbv1alpha1.ReasonTooManyBackups, fdbv1alpha1.ReasonAborted,
		fdbv1alpha1.ReasonNoProgress, fdbv1alpha1.ReasonAgentsPaused, fdbv1alpha1.ReasonDatabaseNotEmpty,
		fdbv1alpha1.ReasonDatabaseChanged, fdbv1alpha1.ReasonFinalizationFailing, fdbv1alpha1.ReasonURLInvalid,
		fdbv1alpha1.ReasonSourceMissing,
	},
}
