package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/drill/gather"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// Find reads the policy and lists the objects of the pools that it limits. Tenants' objects come first: what they wait for may
// be made before Velero's objects are listed, and then counts as active, never as neither.
func (a *Activities) Find(ctx context.Context, wanted contract.TurnsWanted) (contract.TurnsFound, error) {
	found := contract.TurnsFound{Pools: map[contract.Pool]contract.PoolFound{}}
	rules, err := a.rules(ctx)
	if err != nil {
		return found, err
	}
	found.Rules = rules
	for _, pool := range []contract.Pool{contract.PoolBackups, contract.PoolRestores} {
		if rules.Limits[pool] == 0 {
			continue
		}
		objects, err := a.list(ctx, pool)
		if err != nil {
			return found, err
		}
		found.Pools[pool] = objects.found(wanted)
	}
	found.Rules.Weights = weightsFor(rules.Weights, found, wanted)
	return found, nil
}

// Awaits reports whether a NonAdminBackup, NonAdminRestore or RestoreDrill needs a turn, by its status: it waits, or, of the
// first two, its workflow has not begun. Its Velero object may exist nevertheless. A backup that was found in a bucket needs
// none.
func Awaits(object client.Object, clusterID string) bool {
	if drill, is := object.(*holdfastv1alpha1.RestoreDrill); is {
		return gather.AwaitsTurn(drill)
	}
	nab, is := object.(*oadpv1alpha1.NonAdminBackup)
	synced := is && owner.SyncedFrom(nab) != "" && !owner.Derived(owner.Claimed(nab), clusterID, nab)
	if synced || lifecycle.DeletionRequested(object) {
		return false
	}
	switch lifecycle.Phase(object) {
	case "", oadpv1alpha1.NonAdminPhaseNew:
		return !meta.IsStatusConditionTrue(k8s.Conditions(object), string(oadpv1alpha1.NonAdminConditionQueued))
	case oadpv1alpha1.NonAdminPhaseBackingOff:
		return k8s.WaitsForTurn(k8s.Conditions(object))
	}
	return false
}

// listed are the objects of a pool.
type listed struct {
	pool    contract.Pool
	origin  owner.Origin
	cluster string
	waiting []contract.TurnMember
	// uids are those of all tenants' objects, by name, and made the ones with a Velero object. claimed are the names of their Velero
	// objects that their statuses give.
	uids    map[types.NamespacedName]types.UID
	claimed map[types.NamespacedName]string
	made    map[types.UID]bool
	// stalled are those of objects that say that Velero stalls: their turns have ended.
	stalled map[types.UID]bool
	active  []contract.TurnMember
	// orphans are unfinished, and the tenant's object is gone.
	orphans []orphan
}

func (a *Activities) newListed(pool contract.Pool) *listed {
	origin := owner.Backup
	if pool == contract.PoolRestores {
		origin = owner.Restore
	}
	return &listed{
		pool: pool, origin: origin, cluster: a.ClusterID, uids: map[types.NamespacedName]types.UID{},
		claimed: map[types.NamespacedName]string{}, made: map[types.UID]bool{}, stalled: map[types.UID]bool{},
	}
}

// drillsPage is how many RestoreDrills are listed at a time: one may have half a megabyte.
const drillsPage = 20

func (a *Activities) list(ctx context.Context, pool contract.Pool) (objects *listed, err error) {
	objects = a.newListed(pool)
	there := client.InNamespace(a.OADPNamespace)
	if pool == contract.PoolBackups {
		err = activities.EachPage(ctx, a.Client, each[*oadpv1alpha1.NonAdminBackupList](objects.addTenants))
		if err == nil {
			err = activities.EachPage(ctx, a.Client, each[*velerov1.BackupList](objects.addMade), there)
		}
	} else {
		err = activities.EachPage(ctx, a.Client, each[*oadpv1alpha1.NonAdminRestoreList](objects.addTenants))
		if err == nil {
			err = activities.EachPage(ctx, a.Client, each[*holdfastv1alpha1.RestoreDrillList](objects.addDrill), client.Limit(drillsPage))
		}
		if err == nil {
			err = activities.EachPage(ctx, a.Client, each[*velerov1.RestoreList](objects.addMade), there)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list tenants' and Velero's objects of pool %s: %w", pool, err)
	}
	return objects, nil
}

// each visits the objects of a page.
func each[L client.ObjectList](visit func(client.Object)) func(L) {
	return func(page L) {
		_ = meta.EachListItem(page, func(object runtime.Object) error { // visit has no error
			visit(object.(client.Object))
			return nil
		})
	}
}

func (l *listed) addTenants(object client.Object) {
	name := client.ObjectKeyFromObject(object)
	l.uids[name] = object.GetUID()
	if k8s.Stalled(k8s.Conditions(object)) {
		l.stalled[object.GetUID()] = true
	}
	if claimed := owner.Claimed(object); claimed != "" {
		l.claimed[name] = claimed
	}
	if Awaits(object, l.cluster) {
		lane := contract.LaneHand
		if l.pool == contract.PoolBackups {
			lane = Lane(object)
		}
		l.waiting = append(l.waiting, l.member(name, object.GetUID(), lane, object.GetCreationTimestamp()))
	}
}

func (l *listed) member(name types.NamespacedName, uid types.UID, lane int, created metav1.Time) contract.TurnMember {
	return contract.TurnMember{
		TurnKey: contract.TurnKey{Pool: l.pool, ObjectRef: contract.ObjectRef{
			Namespace: name.Namespace, Name: name.Name, UID: string(uid),
		}},
		Lane: lane, Created: created.Unix(),
	}
}

// addMade notes a Velero object of ours. One that is left by a tenant's object that is gone is none of the next object of that
// name; and Velero may have found it in the bucket of another tenant, who could write there whose it is, but not its name.
func (l *listed) addMade(made client.Object) {
	if l.addMadeForDrill(made) {
		return
	}
	active := velero.HoldsTurn(velero.PhaseOf(made))
	key, is := l.keyOf(made)
	if !is || !l.isFor(made.GetName(), key) {
		if name, ours := l.origin.Hint(made); ours && active && owner.MayBeOf(made.GetName(), name.Namespace) {
			l.orphans = append(l.orphans, orphan{made.DeepCopyObject().(client.Object), inTenants(made)})
		}
		return
	}
	l.made[types.UID(key.UID)] = true
	if active && !l.stalled[types.UID(key.UID)] {
		l.active = append(l.active, contract.TurnMember{TurnKey: key, Created: made.GetCreationTimestamp().Unix()})
	}
}

// isFor reports whether a Velero object of that name is the tenant's object's: it has the name that follows from the object's
// UID, or the one that its status gives.
func (l *listed) isFor(made string, key contract.TurnKey) bool {
	object := &metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: types.UID(key.UID)}
	return owner.Derived(made, l.cluster, object) ||
		made == l.claimed[types.NamespacedName{Namespace: key.Namespace, Name: key.Name}]
}

// keyOf names the tenant's object of a Velero object of ours.
func (l *listed) keyOf(made client.Object) (contract.TurnKey, bool) {
	name, ours := l.origin.Hint(made)
	if !ours {
		return contract.TurnKey{}, false
	}
	of := cmp.Or(l.origin.UID(made), l.uids[name])
	return contract.TurnKey{Pool: l.pool, ObjectRef: contract.ObjectRef{
		Namespace: name.Namespace, Name: name.Name, UID: string(of),
	}}, of != ""
}

// found returns what the queue can hold: the front of each lane, those that are named, and who has a turn.
func (l *listed) found(wanted contract.TurnsWanted) contract.PoolFound {
	waiting := slices.DeleteFunc(l.waiting, func(m contract.TurnMember) bool { return l.made[types.UID(m.UID)] })
	slices.SortFunc(waiting, func(a, b contract.TurnMember) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	lanes, named := wanted.Lanes[l.pool], wanted.Named
	found := contract.PoolFound{Active: l.activeOf(wanted)}
	for lane := range contract.TurnLanes {
		of := slices.DeleteFunc(slices.Clone(waiting), func(m contract.TurnMember) bool { return m.Lane != lane })
		var carried []string
		if lane < len(lanes) {
			carried = lanes[lane].Namespaces
		}
		namespace := func(m contract.TurnMember) string { return m.Namespace }
		front, beyond := contract.Front(of, contract.MaxTurnsFound, namespace, carried, contract.NamespacesOf(of, namespace))
		if len(front) < len(of) {
			also := namedAmong(of, front, l.pool, named)
			front, beyond.Count = append(front, also...), beyond.Count-len(also)
		}
		found.Waiting, found.Beyond = append(found.Waiting, front...), append(found.Beyond, beyond)
	}
	return found
}

// namedAmong returns those that are named and not in the front.
func namedAmong(all, front []contract.TurnMember, pool contract.Pool, named []contract.TurnName) []contract.TurnMember {
	there := map[contract.TurnKey]bool{}
	for _, member := range front {
		there[member.TurnKey] = true
	}
	var more []contract.TurnMember
	for _, member := range all {
		name := contract.TurnName{Pool: pool, Namespace: member.Namespace, Name: member.Name}
		if !there[member.TurnKey] && slices.Contains(named, name) {
			more = append(more, member)
		}
	}
	return more
}
