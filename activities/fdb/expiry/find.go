package expiry

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fdb/jobs"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// Find lists the entries that objects need in the queue, in the order of their creation, and the turns whose pods exist. If the
// queue cannot hold all entries, deletions come first, and within each kind those with the oldest last turn.
func (e *Activities) Find(ctx context.Context, in contract.FDBExpiryQueueInput) (contract.FDBExpiriesFound, error) {
	var found contract.FDBExpiriesFound
	type entry struct {
		created metav1.Time
		contract.FDBQueueEntry
	}
	var entries []entry
	there, last := map[contract.ObjectRef]bool{}, map[string]int64{}
	err := e.eachBackup(ctx, func(object *fdbv1alpha1.FoundationDBBackup) {
		there[contract.ObjectRef{Namespace: object.Namespace, Name: object.Name, UID: string(object.UID)}] = true
		if wanted, is := jobs.Entry(object); is {
			entries = append(entries, entry{created: object.CreationTimestamp, FDBQueueEntry: wanted})
			last[object.Namespace] = max(last[object.Namespace], wanted.Last)
		}
	})
	if err != nil {
		return found, err
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(a.created.Compare(b.created.Time), compareRefs(a.Ref, b.Ref))
	})
	var waiting []contract.FDBQueueEntry
	for _, entry := range entries {
		waiting = append(waiting, entry.FDBQueueEntry)
	}
	found.Entries, found.Beyond = frontEntries(waiting, in, last)
	found.Turns, err = e.findTurns(ctx, there)
	return found, err
}

// frontEntries returns the entries that the queue can hold, deletions first. Beyond is nil if these are all entries; they stay in
// their order then. Namespaces that the queue does not know come in the order of their last turns.
func frontEntries(
	waiting []contract.FDBQueueEntry, in contract.FDBExpiryQueueInput, last map[string]int64,
) ([]contract.FDBQueueEntry, []contract.Beyond) {
	var lanes [contract.FDBQueueLanes][]contract.FDBQueueEntry
	for _, entry := range waiting {
		lanes[entry.Job.Lane()] = append(lanes[entry.Job.Lane()], entry)
	}
	rooms := [contract.FDBQueueLanes]int{contract.LaneDelete: contract.MaxDeletionsFound, contract.LaneExpire: contract.MaxFound}
	fit := true
	for lane, of := range lanes {
		fit = fit && len(of) <= rooms[lane]
	}
	if fit {
		return waiting, nil
	}
	var found []contract.FDBQueueEntry
	var beyond []contract.Beyond
	for lane, of := range lanes {
		front, others := frontOf(of, rooms[lane], in.Carried.Namespaces(lane), in.Named, last)
		found, beyond = append(found, front...), append(beyond, others)
	}
	return found, beyond
}

// frontOf returns the front of a lane, and the entries that are named besides.
func frontOf(
	waiting []contract.FDBQueueEntry, room int, namespaces []string, named []contract.FDBQueueName, last map[string]int64,
) ([]contract.FDBQueueEntry, contract.Beyond) {
	slices.SortStableFunc(waiting, func(a, b contract.FDBQueueEntry) int { return cmp.Compare(a.Last, b.Last) })
	namespace := func(entry contract.FDBQueueEntry) string { return entry.Ref.Namespace }
	all := contract.NamespacesOf(waiting, namespace)
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(last[a], last[b]) })
	front, beyond := contract.Front(waiting, room, namespace, namespaces, all)
	if len(front) == len(waiting) {
		return front, beyond
	}
	carried := make(map[contract.ObjectRef]bool, len(front))
	for _, entry := range front {
		carried[entry.Ref] = true
	}
	left := slices.DeleteFunc(waiting, func(entry contract.FDBQueueEntry) bool { return carried[entry.Ref] })
	if len(left) > 0 {
		beyond.NotBefore = left[0].Last
	}
	for _, entry := range left {
		if slices.Contains(named, contract.FDBQueueName{Namespace: entry.Ref.Namespace, Name: entry.Ref.Name}) {
			front = append(front, entry)
		}
	}
	return front, beyond
}

// eachBackup lists all FoundationDBBackups page by page.
func (e *Activities) eachBackup(ctx context.Context, visit func(*fdbv1alpha1.FoundationDBBackup)) error {
	err := activities.EachPage(ctx, e.Client, func(page *fdbv1alpha1.FoundationDBBackupList) {
		for i := range page.Items {
			visit(&page.Items[i])
		}
	})
	if err != nil {
		return fmt.Errorf("list FoundationDBBackups: %w", err)
	}
	return nil
}

// sharing finds the other objects of this Kubernetes cluster that are not being deleted and have a backup in one of the places. A
// plan without a backup does not count: else anybody could block the deletion of others' data by naming their place.
func (e *Activities) sharing(
	ctx context.Context, ref contract.ObjectRef, places []contract.FDBPlace,
) (map[string][]contract.ObjectRef, error) {
	var shared map[string][]contract.ObjectRef
	err := e.eachBackup(ctx, func(object *fdbv1alpha1.FoundationDBBackup) {
		if string(object.UID) == ref.UID || !object.DeletionTimestamp.IsZero() {
			return
		}
		for _, place := range places {
			if !slices.ContainsFunc(object.Status.Backups, func(entry fdbv1alpha1.BackupDetails) bool {
				return entry.State != fdb.StateNeverRan && fdb.ContainerOf(entry.URL) == place.Container
			}) {
				continue
			}
			if shared == nil {
				shared = map[string][]contract.ObjectRef{}
			}
			shared[place.Container] = append(shared[place.Container], contract.ObjectRef{
				Namespace: object.Namespace, Name: object.Name, UID: string(object.UID),
			})
		}
	})
	return shared, err
}

// findTurns returns one turn for each of the objects that has pods: the newest. It is closing once all of its pods are being
// deleted. Pods that name another owner are ignored.
func (e *Activities) findTurns(ctx context.Context, objects map[contract.ObjectRef]bool) ([]contract.FDBTurn, error) {
	newest, now := map[types.UID]contract.FDBTurn{}, e.now()
	err := e.eachPod(ctx, func(pod *corev1.Pod) {
		turn, is := jobs.Turn(pod, now)
		if !is || !objects[turn.Ref] {
			return
		}
		uid := types.UID(turn.Ref.UID)
		known, has := newest[uid]
		closing := turn.Closing && (!has || known.Closing)
		if has && known.Turn >= turn.Turn {
			turn = known
		}
		turn.Closing = closing
		newest[uid] = turn
	}, client.HasLabels{fdbv1alpha1.LabelExpiry})
	var turns []contract.FDBTurn
	for _, turn := range newest {
		turns = append(turns, turn)
	}
	slices.SortFunc(turns, func(a, b contract.FDBTurn) int {
		return cmp.Or(cmp.Compare(a.Turn, b.Turn), compareRefs(a.Ref, b.Ref))
	})
	return turns, err
}

func compareRefs(a, b contract.ObjectRef) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
