package queue

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// leftBehind reports whether the object is gone, its finalizer removed by hand, and Velero works on what was made for it.
func (a *Activities) leftBehind(ctx context.Context, back contract.TurnReturn) (bool, error) {
	if back.Waits {
		return false, nil
	}
	if back.Drill {
		made := owner.DrillName(a.ClusterID, types.UID(back.UID))
		return a.left(ctx, back.TurnKey, &holdfastv1alpha1.RestoreDrill{}, made, &velerov1.Restore{})
	}
	made := owner.NACUUID(a.ClusterID, back.Namespace, back.Name, back.UID)
	if back.Pool == contract.PoolRestores {
		return a.left(ctx, back.TurnKey, &oadpv1alpha1.NonAdminRestore{}, made, &velerov1.Restore{})
	}
	return a.left(ctx, back.TurnKey, &oadpv1alpha1.NonAdminBackup{}, made, &velerov1.Backup{})
}

func (a *Activities) left(
	ctx context.Context, key contract.TurnKey, object client.Object, name string, made client.Object,
) (bool, error) {
	exists, err := k8s.Get(ctx, a.Client, key.Kind().Kubernetes, key.Namespace, key.Name, object)
	if err != nil || (exists && object.GetUID() == types.UID(key.UID)) {
		return false, err
	}
	exists, err = k8s.Get(ctx, a.Client, "Velero object", a.OADPNamespace, name, made)
	return exists && velero.HoldsTurn(velero.PhaseOf(made)), err
}
