package queue

import (
	"cmp"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

// orphan is a Velero object whose tenant's object is gone. Of one in a tenant's location only its name proves anything: Velero
// may have found it in the tenant's bucket.
type orphan struct {
	client.Object
	inTenants bool
}

func inTenants(made client.Object) bool {
	backup, is := made.(*velerov1.Backup)
	return is && owner.MayBeTenants(backup.Spec.StorageLocation)
}

// activeOf returns who has a turn, as far as that is wanted.
func (l *listed) activeOf(wanted contract.TurnsWanted) []contract.TurnMember {
	active := l.active
	for _, orphan := range l.orphans {
		created := orphan.GetCreationTimestamp()
		if key, is := l.orphanKey(orphan, wanted.Doubted); is {
			active = append(active, contract.TurnMember{TurnKey: key, Created: created.Unix()})
		}
	}
	if !wanted.Unknown[l.pool] {
		return slices.DeleteFunc(active, func(m contract.TurnMember) bool { return !slices.Contains(wanted.Doubted, m.TurnKey) })
	}
	if len(active) > contract.MaxTurnsActive {
		slices.SortFunc(active, func(a, b contract.TurnMember) int { return cmp.Compare(b.Created, a.Created) })
		active = active[:contract.MaxTurnsActive]
	}
	return active
}

// orphanKey returns the key of the turn by which an orphan was made, or one of its own.
func (l *listed) orphanKey(made orphan, doubted []contract.TurnKey) (contract.TurnKey, bool) {
	name, _ := l.origin.Hint(made)
	for _, key := range doubted {
		object := &metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: types.UID(key.UID)}
		if key.Pool == l.pool && owner.Derived(made.GetName(), l.cluster, object) {
			return key, true
		}
	}
	return contract.TurnKey{Pool: l.pool, ObjectRef: contract.ObjectRef{
		Namespace: name.Namespace, Name: made.GetName(), UID: "of-" + string(made.GetUID()),
	}}, !made.inTenants
}
