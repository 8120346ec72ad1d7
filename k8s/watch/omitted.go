package watch

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/backup"
	"holdfast.dev/holdfast/k8s/location"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/restore"
	"holdfast.dev/holdfast/k8s/watch/trim"
	"holdfast.dev/holdfast/workflows/contract"
)

// gatherBackup reads what the cache has of a NonAdminBackup.
func gatherBackup(ctx context.Context, from *backup.Gatherer, ref contract.ObjectRef) (*backup.Objects, error) {
	objects, err := from.Gather(ctx, ref)
	if err == nil && objects.NAB != nil {
		objects.Verdict = bySize(objects.Verdict, objects.NAB, policy.CheckBackupSize, oadpv1alpha1.ReasonInvalidBackupSpec)
	}
	return objects, err
}

// gatherRestore reads what the cache has of a NonAdminRestore.
func gatherRestore(ctx context.Context, from *restore.Gatherer, ref contract.ObjectRef) (*restore.Objects, error) {
	objects, err := from.Gather(ctx, ref)
	if err == nil && objects.NAR != nil {
		objects.Verdict = bySize(objects.Verdict, objects.NAR, policy.CheckRestoreSize, oadpv1alpha1.ReasonInvalidRestoreSpec)
	}
	return objects, err
}

// bySize is the verdict on a spec of which the cache may have kept its size alone. Whatever else it says, one that is too large
// is refused for that. Of one that is not, only its workflow can tell what it deserves: no condition says what the empty verdict
// does, so that its object is looked at with every event and every resync.
func bySize(
	verdict *backup.Verdict, of client.Object, check func(size int) error, refused string,
) *backup.Verdict {
	size := trim.OmittedBytes(of)
	if size == 0 || verdict == nil || (!verdict.Accepted && verdict.Reason != refused) {
		return verdict
	}
	if err := check(size); err != nil {
		return &backup.Verdict{Reason: refused, Message: err.Error()}
	}
	return &backup.Verdict{}
}

// incomplete reports whether the cache has not kept all that a storage location is judged by. Its workflow is told of every event
// then.
func incomplete(o *location.Objects) bool {
	return (o.Location != nil && trim.OmittedBytes(o.Location) > 0) || (o.Request != nil && trim.OmittedBytes(o.Request) > 0) ||
		(o.Velero != nil && trim.OmittedBytes(o.Velero) > 0)
}
