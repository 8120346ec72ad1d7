package expiry_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/fdb/backup"
	"holdfast.dev/holdfast/activities/fdb/expiry"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// backupIn returns a FoundationDBBackup in a namespace.
func backupIn(namespace, name string, change func(*fdbv1alpha1.FoundationDBBackup)) client.Object {
	object := &fdbv1alpha1.FoundationDBBackup{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("u-" + name), CreationTimestamp: metav1.NewTime(time.Unix(expiryTurn, 0)),
	}}
	change(object)
	return object
}

// The first of each namespace come before the second of any, and the one that has waited longest comes first.
func TestMoreThanAQueueCarries(t *testing.T) {
	had := func(turn int64) func(*fdbv1alpha1.FoundationDBBackup) {
		return func(o *fdbv1alpha1.FoundationDBBackup) {
			o.Spec.Expiry.MaxRetention = "720h"
			if turn > 0 {
				o.Status.Expiry = &fdbv1alpha1.BackupExpiryStatus{Turn: turn}
			}
		}
	}
	objects := []client.Object{
		backupIn("late", "one", had(expiryTurn-5)), backupIn("early", "one", had(0)), backupIn("early", "two", had(0)),
	}
	for n := range contract.MaxFound {
		objects = append(objects, backupIn("huge", fmt.Sprintf("h%04d", n), had(int64(n%2)*(expiryTurn-1000+int64(n)))))
	}
	expiries := &expiry.Activities{Client: fake.NewFDBWorld(objects...).Client, Now: expiryNow}
	found, err := expiries.Find(t.Context(), contract.FDBExpiryQueueInput{
		Cluster: "west", Named: []contract.FDBQueueName{{Namespace: "huge", Name: "h0999"}},
	})
	require.NoError(t, err)
	require.Len(t, found.Entries, contract.MaxFound+1)
	in := map[string]int{}
	for _, entry := range found.Entries {
		in[entry.Ref.Namespace]++
	}
	assert.Equal(t, map[string]int{"huge": contract.MaxFound - 2, "early": 2, "late": 1}, in)
	assert.Equal(t, contract.ObjectRef{Namespace: "late", Name: "one", UID: "u-one"}, found.Entries[contract.MaxFound-1].Ref)
	assert.Equal(t, "h0999", found.Entries[contract.MaxFound].Ref.Name, "the one requested by name")
	assert.Equal(t, []contract.Beyond{{}, {Count: 3, Namespaces: []string{"huge"}, NotBefore: expiryTurn - 5}}, found.Beyond)
}

// Deletions come first however many expirations wait; if there are too many deletions, the queue holds a part of them.
func TestDeletionsComeFirst(t *testing.T) {
	var objects []client.Object
	for n := range contract.MaxFound + 10 {
		objects = append(objects, backupIn("huge", fmt.Sprintf("h%04d", n), func(o *fdbv1alpha1.FoundationDBBackup) {
			o.Spec.Expiry.MaxRetention = "720h"
		}))
	}
	going := func(name string) client.Object {
		return backupIn("huge", name, func(o *fdbv1alpha1.FoundationDBBackup) {
			now := metav1.NewTime(time.Unix(expiryTurn, 0))
			o.DeletionTimestamp, o.Finalizers = &now, []string{fdbv1alpha1.FinalizerDelete}
			o.Status.Expiry = &fdbv1alpha1.BackupExpiryStatus{Turn: expiryTurn - 5}
		})
	}
	find := func() contract.FDBExpiriesFound {
		expiries := &expiry.Activities{Client: fake.NewFDBWorld(objects...).Client, Now: expiryNow}
		found, err := expiries.Find(t.Context(), contract.FDBExpiryQueueInput{Cluster: "west"})
		require.NoError(t, err)
		return found
	}
	objects = append(objects, going("z"))
	found := find()
	assert.Len(t, found.Entries, contract.MaxFound+1)
	assert.Equal(t, contract.FDBJobDelete, found.Entries[0].Job)
	assert.Equal(t, []contract.Beyond{{}, {Count: 10, Namespaces: []string{"huge"}}}, found.Beyond)

	for n := range contract.MaxDeletionsFound + 2 {
		objects = append(objects, going(fmt.Sprintf("z%04d", n)))
	}
	found = find()
	assert.Len(t, found.Entries, contract.MaxFound+contract.MaxDeletionsFound)
	assert.Equal(t, 3, found.Beyond[contract.LaneDelete].Count)
}

func TestWhoWaitsForASlot(t *testing.T) {
	waits := func(since int64) func(*fdbv1alpha1.FoundationDBBackup) {
		return func(o *fdbv1alpha1.FoundationDBBackup) {
			o.Status.Conditions = []metav1.Condition{{
				Type: fdbv1alpha1.ConditionIncorrectBackupState, Status: metav1.ConditionTrue, Reason: fdbv1alpha1.ReasonWaitingForSlot,
				LastTransitionTime: metav1.NewTime(time.Unix(expiryTurn+since, 0)),
			}}
		}
	}
	objects := []client.Object{
		backupIn("b", "second", waits(2)), backupIn("a", "third", waits(3)), backupIn("a", "first", waits(1)),
		backupIn("a", "idle", func(*fdbv1alpha1.FoundationDBBackup) {}),
	}
	find := func(carried ...string) contract.FDBHolders {
		backups := &backup.Activities{Cluster: activities.Cluster{Client: fake.NewFDBWorld(objects...).Client}}
		found, err := backups.FindFirstSnapshots(t.Context(), contract.FDBThrottleInput{
			Cluster: "west", Carried: contract.Carried[string]{Lanes: []contract.Lane{{Namespaces: carried}}},
		})
		require.NoError(t, err)
		return found
	}
	holder := func(namespace, name string, since int64) contract.FDBHolder {
		return contract.FDBHolder{
			WorkflowID: "west/fdbb/" + namespace + "/" + name + "/u-" + name, Namespace: namespace, Since: expiryTurn + since,
		}
	}
	assert.Equal(t, contract.FDBHolders{Waiting: []contract.FDBHolder{
		holder("a", "first", 1), holder("b", "second", 2), holder("a", "third", 3),
	}}, find())

	for n := range contract.MaxFound {
		objects = append(objects, backupIn("huge", fmt.Sprintf("h%04d", n), waits(-10)))
	}
	found := find("b", contract.OtherNamespaces)
	assert.Len(t, found.Waiting, contract.MaxFound)
	assert.Contains(t, found.Waiting, holder("b", "second", 2))
	assert.Contains(t, found.Waiting, holder("a", "first", 1))
	assert.Equal(t, &contract.Beyond{Count: 3, Namespaces: []string{"huge"}}, found.Beyond)
}
