package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// decidedAtFirstSight: a script waits for the condition and runs holdfast approve, for a new location and for a changed one.
func decidedAtFirstSight(t *testing.T) {
	x := newTenant(t, "bob")
	config, err := stack.RESTConfig(env.Admin)
	require.NoError(t, err)
	watcher, err := client.NewWithWatch(config, client.Options{Scheme: k8s.Scheme()})
	require.NoError(t, err)
	changes, err := watcher.Watch(t.Context(), &oadpv1alpha1.NonAdminBackupStorageLocationList{}, client.InNamespace(x.namespace))
	require.NoError(t, err)
	defer changes.Stop()
	approver := newApprover(t, "judy")
	location := x.own(newAccount(t))
	for _, prefix := range []string{"", "two"} {
		if prefix != "" {
			x.prefixed(location, prefix)
		}
		now := firstPending(t, changes, prefix)
		asked := readRequest(t, now).Status.VeleroBackupStorageLocationApprovalRequest
		require.NotNil(t, asked, "nothing to decide about")
		require.NotNil(t, asked.PendingSpec, "nothing to decide about")
		require.Equal(t, prefix, asked.PendingSpec.ObjectStorage.Prefix)
		output, err := holdfastAs(t.Context(), approver, "approve", now.Namespace+"/"+now.Name, "--reason", "seen "+prefix)
		require.NoError(t, err, output)
		x.awaitApproval(now, contract.ApprovalApproved)
	}
	x.remove(location)
}

// firstPending returns a location with this prefix as it was when it was first shown to wait for approval.
func firstPending(t *testing.T, changes watch.Interface, prefix string) *nabsl {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case event := <-changes.ResultChan():
			now, is := event.Object.(*nabsl)
			require.True(t, is, "%v", event)
			condition := locationCondition(now, oadpv1alpha1.NonAdminConditionClusterAdminApproved)
			if condition != nil && condition.Status == metav1.ConditionFalse && condition.ObservedGeneration == now.Generation &&
				now.Spec.BackupStorageLocationSpec.ObjectStorage.Prefix == prefix {
				return now
			}
		case <-timeout:
			require.Fail(t, "never shown to wait for approval", "prefix %q", prefix)
		}
	}
}
