package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/backup"
	"holdfast.dev/holdfast/activities/restore"
	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/contract"
)

// Find reads the policy and lists the objects of the pools that it limits. Tenants' objects come first: what they wait for may be made
// before Velero's objects are listed, and then counts as active, never as neither.
func (a *Activities) Find(ctx context.Context, wanted contract.TurnsWanted) (contract.TurnsFound, error) {
	found := contract.TurnsFound{Pools: map[contract.Pool]contract.PoolFound{}}
	rules, err := a.rules(ctx)
	if err != nil {
		return found, err
	}
	found.Rules = rules
	for pool, list := range map[contract.Pool]func(context.Context) (*listed, error){
		contract.PoolBackups: a.listBackups, contract.PoolRestores: a.listRestores,
	} {
		if rules.Limits[pool] == 0 {
			continue
		}
		objects, err := list(ctx)
		if err != nil {
			return found, err
		}
		found.Pools[pool] = objects.found(wanted.Lanes[pool], wanted.Named)
	}
	return found, nil
}

// rules returns the policy's rules, with the weights of the namespaces that exist.
func (a *Activities) rules(ctx context.Context) (contract.TurnRules, error) {
	version := a.Policy.Version()
	current, err := a.Policy.Get(ctx)
	if err != nil {
		return contract.TurnRules{}, fmt.Errorf("read the admin's policy: %w", err)
	}
	rules := RulesOf(current.Queue)
	rules.Version = cmp.Or(a.Policy.Version(), version)
	if len(current.Queue.Weights) == 0 {
		return rules, nil
	}
	namespaces, err := activities.ListMetadata(ctx, a.Client, corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err != nil {
		return rules, err
	}
	rules.Weights = map[string]int{}
	for i := range namespaces {
		if weight := current.Queue.WeightOf(namespaces[i].Labels); weight != 1 {
			rules.Weights[namespaces[i].Name] = weight
		}
	}
	return rules, nil
}

// RulesOf returns the rules of a policy, without weights.
func RulesOf(queue policy.Queue) contract.TurnRules {
	rules := contract.TurnRules{Limits: map[contract.Pool]int{}, Timeout: int64(queue.Timeout() / time.Second)}
	for pool, limit := range map[contract.Pool]int{
		contract.PoolBackups: queue.MaxActive, contract.PoolRestores: queue.MaxActiveRestores,
	} {
		if limit > 0 {
			rules.Limits[pool] = limit
		}
	}
	return rules
}

// Awaits reports whether an object needs a turn, by its status: it waits, or its workflow has not begun. Its Velero object may exist
// nevertheless.
func Awaits(phase oadpv1alpha1.NonAdminPhase, conditions []metav1.Condition) bool {
	switch phase {
	case "", oadpv1alpha1.NonAdminPhaseNew:
		return !meta.IsStatusConditionTrue(conditions, string(oadpv1alpha1.NonAdminConditionQueued))
	case oadpv1alpha1.NonAdminPhaseBackingOff:
		return k8s.WaitsForTurn(conditions)
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
	active  []contract.TurnMember
}

func (a *Activities) newListed(pool contract.Pool, origin owner.Origin) *listed {
	return &listed{
		pool: pool, origin: origin, cluster: a.ClusterID, uids: map[types.NamespacedName]types.UID{},
		claimed: map[types.NamespacedName]string{}, made: map[types.UID]bool{},
	}
}

func (a *Activities) listBackups(ctx context.Context) (*listed, error) {
	objects := a.newListed(contract.PoolBackups, owner.Backup)
	err := activities.EachPage(ctx, a.Client, func(page *oadpv1alpha1.NonAdminBackupList) {
		for i := range page.Items {
			nab := &page.Items[i]
			going := !nab.DeletionTimestamp.IsZero() || nab.Spec.DeleteBackup || nab.Spec.ForceDeleteBackup
			objects.addTenants(nab, !going && owner.SyncedFrom(nab) == "" && Awaits(nab.Status.Phase, nab.Status.Conditions))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list NonAdminBackups: %w", err)
	}
	err = activities.EachPage(ctx, a.Client, func(page *velerov1.BackupList) {
		for i := range page.Items {
			objects.addMade(&page.Items[i], ActiveBackup(page.Items[i].Status.Phase))
		}
	}, client.InNamespace(a.OADPNamespace))
	if err != nil {
		return nil, fmt.Errorf("list Velero Backups: %w", err)
	}
	return objects, nil
}

func (a *Activities) listRestores(ctx context.Context) (*listed, error) {
	objects := a.newListed(contract.PoolRestores, owner.Restore)
	err := activities.EachPage(ctx, a.Client, func(page *oadpv1alpha1.NonAdminRestoreList) {
		for i := range page.Items {
			nar := &page.Items[i]
			objects.addTenants(nar, nar.DeletionTimestamp.IsZero() && Awaits(nar.Status.Phase, nar.Status.Conditions))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list NonAdminRestores: %w", err)
	}
	err = activities.EachPage(ctx, a.Client, func(page *velerov1.RestoreList) {
		for i := range page.Items {
			objects.addMade(&page.Items[i], ActiveRestore(page.Items[i].Status.Phase))
		}
	}, client.InNamespace(a.OADPNamespace))
	if err != nil {
		return nil, fmt.Errorf("list Velero Restores: %w", err)
	}
	return objects, nil
}

// ActiveBackup reports whether a Velero Backup in this phase has a turn.
func ActiveBackup(phase velerov1.BackupPhase) bool {
	return !backup.Finished(phase) && phase != velerov1.BackupPhaseDeleting
}

// ActiveRestore reports whether a Velero Restore in this phase has a turn.
func ActiveRestore(phase velerov1.RestorePhase) bool { return !restore.Finished(phase) }

func (l *listed) addTenants(object client.Object, waits bool) {
	name := client.ObjectKeyFromObject(object)
	l.uids[name] = object.GetUID()
	if claimed := owner.Claimed(object); claimed != "" {
		l.claimed[name] = claimed
	}
	if waits {
		lane := contract.LaneHand
		if l.pool == contract.PoolBackups {
			lane = backup.Lane(object)
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

// addMade notes a Velero object of ours. One that is left by a tenant's object that is gone is none of the next object of that name;
// and Velero may have found it in the bucket of another tenant, who could write there whose it is, but not its name.
func (l *listed) addMade(made client.Object, active bool) {
	key, is := KeyOf(l.pool, l.origin, made, func(name types.NamespacedName) types.UID { return l.uids[name] })
	if !is || !l.isFor(made.GetName(), key) {
		return
	}
	l.made[types.UID(key.UID)] = true
	if active {
		l.active = append(l.active, contract.TurnMember{TurnKey: key, Created: made.GetCreationTimestamp().Unix()})
	}
}

// isFor reports whether a Velero object of that name is the tenant's object's: it has the name that follows from the object's UID, or
// the one that its status gives.
func (l *listed) isFor(made string, key contract.TurnKey) bool {
	object := &metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: types.UID(key.UID)}
	return owner.Derived(made, l.cluster, object) ||
		made == l.claimed[types.NamespacedName{Namespace: key.Namespace, Name: key.Name}]
}

// KeyOf names the tenant's object of a Velero object of ours. uid returns the UID of a tenant's object, for a Velero object that does
// not say it.
func KeyOf(
	pool contract.Pool, origin owner.Origin, made client.Object, uid func(types.NamespacedName) types.UID,
) (contract.TurnKey, bool) {
	name, ours := origin.Hint(made)
	if !ours {
		return contract.TurnKey{}, false
	}
	of := cmp.Or(origin.UID(made), uid(name))
	return contract.TurnKey{Pool: pool, ObjectRef: contract.ObjectRef{
		Namespace: name.Namespace, Name: name.Name, UID: string(of),
	}}, of != ""
}

// found returns what the queue can hold: the front of each lane, and those that are named.
func (l *listed) found(lanes []contract.Lane, named []contract.TurnName) contract.PoolFound {
	waiting := slices.DeleteFunc(l.waiting, func(m contract.TurnMember) bool { return l.made[types.UID(m.UID)] })
	slices.SortFunc(waiting, func(a, b contract.TurnMember) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	found := contract.PoolFound{Active: l.active}
	if len(waiting) > 0 {
		found.Oldest = waiting[0].Created
	}
	for lane := range contract.TurnLanes {
		of := slices.DeleteFunc(slices.Clone(waiting), func(m contract.TurnMember) bool { return m.Lane != lane })
		var carried []string
		if lane < len(lanes) {
			carried = lanes[lane].Namespaces
		}
		namespace := func(m contract.TurnMember) string { return m.Namespace }
		front, beyond := contract.Front(of, contract.MaxTurnsFound, namespace, carried, contract.NamespacesOf(of, namespace))
		found.Waiting, found.Beyond = append(found.Waiting, front...), append(found.Beyond, beyond)
		if len(front) < len(of) {
			found.Waiting = append(found.Waiting, namedAmong(of, front, l.pool, named)...)
		}
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
