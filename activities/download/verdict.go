package download

import (
	"fmt"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/kstatus"
	"holdfast.dev/holdfast/k8s/velero"
)

// Verdict is the result of judging the file that a NonAdminDownloadRequest asks for.
type Verdict struct {
	// Available: it may be handed out. Target is then the target for Velero.
	Available bool
	Target    velerov1.DownloadTarget
	// Condition and Message say why not, otherwise.
	Condition oadpv1alpha1.NonAdminCondition
	Message   string
}

// condition is the condition for the verdict, until there is a URL.
func (v Verdict) condition() metav1.Condition {
	if v.Available {
		return metav1.Condition{
			Type: string(oadpv1alpha1.NonAdminConditionProcessed), Status: metav1.ConditionFalse,
			Reason: oadpv1alpha1.ReasonDownloadRequested, Message: oadpv1alpha1.MessageDownloadRequested,
		}
	}
	return metav1.Condition{ // tools stop waiting for the URL at any True condition of this reason
		Type: string(v.Condition), Status: metav1.ConditionTrue,
		Reason: oadpv1alpha1.ReasonDownloadError, Message: v.Message,
	}
}

// NotOwned is the verdict if a DownloadRequest of the required name exists and was made for something else.
func NotOwned(o *Objects) Verdict {
	return subjects[o.NADR.Spec.Target.Kind].refuse("a Velero DownloadRequest named %q exists and was not made for this "+
		"NonAdminDownloadRequest; ask an administrator to remove it", o.requestName)
}

// locationNotUsed is the verdict on a file in an administrator's storage location.
func locationNotUsed() Verdict {
	return Verdict{
		Condition: oadpv1alpha1.NonAdminConditionNonAdminBackupStorageLocationNotUsed,
		Message:   oadpv1alpha1.MessageLocationNotUsed,
	}
}

// subject is the kind of object that a file belongs to.
type subject string

const (
	ofBackup  subject = oadpv1alpha1.KindNonAdminBackup
	ofRestore subject = oadpv1alpha1.KindNonAdminRestore
)

// refuse is the verdict on a file that is not available. An unknown kind of file is refused like one of a backup.
func (s subject) refuse(why string, args ...any) Verdict {
	condition, message := oadpv1alpha1.NonAdminConditionNonAdminBackupNotAvailable, oadpv1alpha1.MessageBackupUnavailable
	if s == ofRestore {
		condition, message = oadpv1alpha1.NonAdminConditionNonAdminRestoreNotAvailable, oadpv1alpha1.MessageRestoreUnavailable
	}
	return Verdict{Condition: condition, Message: message + ": " + fmt.Sprintf(why, args...)}
}

// notSigned begins the reason of a refusal that is Velero's.
const notSigned = "Velero has not signed a URL"

// failed: Velero has answered that there will be no URL for the target.
func (o *Objects) failed(target velerov1.DownloadTarget) bool {
	return o.Request != nil && o.Request.Status.Phase == velero.DownloadRequestFailed && o.Request.Spec.Target == target
}

// refusedByVelero is the verdict that repeats Velero's refusal, if the status says it of this generation; else nil. Velero's
// request is gone then, and without this another would be made for ever.
func refusedByVelero(nadr *oadpv1alpha1.NonAdminDownloadRequest) *Verdict {
	for _, condition := range kstatus.Others(nadr.Status.Conditions) {
		if condition.ObservedGeneration == nadr.Generation && condition.Reason == oadpv1alpha1.ReasonDownloadError &&
			strings.Contains(condition.Message, ": "+notSigned) {
			return &Verdict{Condition: oadpv1alpha1.NonAdminCondition(condition.Type), Message: condition.Message}
		}
	}
	return nil
}

// subjects maps each kind of file to the kind of object that it belongs to.
var subjects = map[velerov1.DownloadTargetKind]subject{
	velerov1.DownloadTargetKindBackupLog:                       ofBackup,
	velerov1.DownloadTargetKindBackupContents:                  ofBackup,
	velerov1.DownloadTargetKindBackupVolumeSnapshots:           ofBackup,
	velerov1.DownloadTargetKindBackupItemOperations:            ofBackup,
	velerov1.DownloadTargetKindBackupResourceList:              ofBackup,
	velerov1.DownloadTargetKindBackupResults:                   ofBackup,
	velerov1.DownloadTargetKindCSIBackupVolumeSnapshots:        ofBackup,
	velerov1.DownloadTargetKindCSIBackupVolumeSnapshotContents: ofBackup,
	velerov1.DownloadTargetKindBackupVolumeInfos:               ofBackup,
	velerov1.DownloadTargetKindRestoreLog:                      ofRestore,
	velerov1.DownloadTargetKindRestoreResults:                  ofRestore,
	velerov1.DownloadTargetKindRestoreResourceList:             ofRestore,
	velerov1.DownloadTargetKindRestoreItemOperations:           ofRestore,
	velerov1.DownloadTargetKindRestoreVolumeInfo:               ofRestore,
}

// TargetIs reports whether a target is a file of the tenant's object of that kind and name.
func TargetIs(target velerov1.DownloadTarget, kind, name string) bool {
	return target.Name == name && string(subjects[target.Kind]) == kind
}
