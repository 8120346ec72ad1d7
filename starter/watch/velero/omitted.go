package velero

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/location"
	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/backupspec"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
	"holdfast.dev/holdfast/starter/watch/trim"
)

var (
	omittedBackup  = omittedSpec{oadpv1alpha1.ReasonInvalidBackupSpec, backupspec.CheckSize, backupspec.SpeaksOfLocation}
	omittedRestore = omittedSpec{oadpv1alpha1.ReasonInvalidRestoreSpec, restorespec.CheckSize, restorespec.SpeaksOfSource}
)

// omittedSpec is how a kind is judged if the cache kept only the size of its spec, and the name in it.
type omittedSpec struct {
	refused string
	// check judges the size.
	check func(size int) error
	// outside reports whether a refusal is about the object that the spec names.
	outside func(message string) bool
}

// verdict replaces the verdict on a spec that the cache may not have kept whole. A spec that is too large is refused for its
// size. Otherwise a refusal about the object that the spec names stands as long as it would be the same today. Any other
// refusal stands until the spec is edited or the policy written. The empty verdict, which no condition has, makes the workflow
// judge.
func (s omittedSpec) verdict(today *check.Verdict, of client.Object) *check.Verdict {
	size := trim.OmittedBytes(of)
	if size == 0 {
		return today
	}
	if err := s.check(size); err != nil {
		return &check.Verdict{Reason: s.refused, Message: err.Error()}
	}
	said := meta.FindStatusCondition(k8s.Conditions(of), string(oadpv1alpha1.NonAdminConditionAccepted))
	if quota := oadpv1alpha1.ReasonQuotaExceeded; said != nil && said.Reason == quota && today.Reason == quota {
		return today // a quota does not judge the spec, and what has judged it was satisfied
	}
	if said != nil && said.Reason == s.refused && (said.Message == today.Message || !s.outside(said.Message)) {
		return nil
	}
	return &check.Verdict{}
}

// incomplete reports whether the cache has not kept all that a storage location is judged by.
func incomplete(o *location.Objects) bool {
	return (o.Location != nil && trim.OmittedBytes(o.Location) > 0) || (o.Request != nil && trim.OmittedBytes(o.Request) > 0) ||
		(o.Velero != nil && trim.OmittedBytes(o.Velero) > 0)
}
