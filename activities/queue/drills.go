package queue

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/drill/gather"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// addDrill notes a drill that waits for its turn.
func (l *listed) addDrill(object client.Object) {
	if drill, is := object.(*holdfastv1alpha1.RestoreDrill); is && gather.AwaitsTurn(drill) {
		l.waiting = append(l.waiting, l.drill(client.ObjectKeyFromObject(drill), drill.UID, drill))
	}
}

func (l *listed) drill(name types.NamespacedName, uid types.UID, of client.Object) contract.TurnMember {
	member := l.member(name, uid, contract.LaneDrill, of.GetCreationTimestamp())
	member.Drill = true
	return member
}

// addMadeForDrill notes a Velero Restore that was made for a drill, which may be gone. It returns false for any other.
func (l *listed) addMadeForDrill(made client.Object) bool {
	restore, is := made.(*velerov1.Restore)
	if !is {
		return false
	}
	key, uid, ours := owner.DrillOf(l.cluster, restore)
	if !ours {
		return false
	}
	l.made[uid] = true
	if velero.HoldsTurn(velero.PhaseOf(restore)) {
		l.active = append(l.active, l.drill(key, uid, restore))
	}
	return true
}
