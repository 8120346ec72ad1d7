package production_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fdb/coordination"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/tenants"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// The longest names that Kubernetes accepts: of a cluster (--cluster-id), a namespace and an object. A plan has 63 at most.
var (
	longestCluster = long("c", 63)
	longestRef     = contract.ObjectRef{
		Namespace: long("n", 63), Name: long("o", 253), UID: "11111111-1111-1111-1111-111111111111",
	}
	longestPlan = long("p", 63)
	// longestContainer is host:port/bucket/path and a time, as the fields of a FoundationDBBackup bound them.
	longestContainer = long("h", 250) + ":65535/" + long("b", 63) + "/" + long("d", 512) + long("t", 64)
	// longestFDBCluster is a description:id; FoundationDB has no limit for either.
	longestFDBCluster = long("d", 1000) + ":" + long("i", 32)
)

// All names are as long as Kubernetes accepts. A backup, a restore and a plan come to their ends as any others do,
// and their workflows are found by their objects' names.
func TestTheLongestNames(t *testing.T) {
	r := onSharedStack(t, longestRef.Namespace)
	s := newStore(r)
	require.Equal(t, longestCluster, r.ClusterID())
	name := longestRef.Name
	r.BackUp(name, "")
	nab := r.AwaitEnd(name)
	s.requireWhole(contract.KindBackup, nab)
	r.awaitEvent(nab)
	restore := r.restoreAll(name)
	s.requireWhole(contract.KindRestore, restore)
	s.requireFound(contract.KindFinalization, restore)
	r.runOfThePlan(s)
	r.refusesALongerPlan()

	for made := range r.Made() {
		r.remove(made)
	}
	r.AwaitNoOpenWorkflow()
}

// restoreAll restores a backup, under the same name.
func (r *rig) restoreAll(name string) *oadpv1alpha1.NonAdminRestore {
	r.T.Helper()
	restore := &oadpv1alpha1.NonAdminRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Name, Name: name},
		Spec:       oadpv1alpha1.NonAdminRestoreSpec{RestoreSpec: &velerov1.RestoreSpec{BackupName: name}},
	}
	require.NoError(r.T, r.Tenant.Create(r.T.Context(), restore))
	r.Await(func(ctx context.Context) error {
		err := r.Admin.Get(ctx, client.ObjectKeyFromObject(restore), restore)
		ended := restore.Status.Finalization
		if err == nil && (ended == nil || ended.Phase != oadpv1alpha1.FinalizationPhaseCompleted) {
			err = fmt.Errorf("the restore is not Completed: %+v", restore.Status)
		}
		return err
	})
	return restore
}

// runOfThePlan has the Schedule of a plan make a run, and deletes the plan.
func (r *rig) runOfThePlan(s *store) {
	r.T.Helper()
	plan := &holdfastv1alpha1.BackupPlan{ObjectMeta: metav1.ObjectMeta{Namespace: r.Name, Name: longestPlan}}
	plan.Spec.Schedule = "0 2 1 1 *"
	plan.Spec.Template.Spec.BackupSpec = &velerov1.BackupSpec{SnapshotVolumes: ptr.To(false)}
	require.NoError(r.T, r.Tenant.Create(r.T.Context(), plan))
	id := contract.WorkflowID(r.ClusterID(), contract.KindPlan, refOf(plan))
	schedule := s.temporal.ScheduleClient().GetHandle(r.T.Context(), id)
	r.Await(func(ctx context.Context) error { return schedule.Trigger(ctx, temporalclient.ScheduleTriggerOptions{}) })
	var run string
	r.Await(func(ctx context.Context) error {
		var runs oadpv1alpha1.NonAdminBackupList
		err := r.Admin.List(ctx, &runs, client.InNamespace(r.Name), client.MatchingLabels{holdfastv1alpha1.LabelPlan: longestPlan})
		if err == nil && len(runs.Items) != 1 {
			err = fmt.Errorf("the plan has made %d runs", len(runs.Items))
		}
		if err == nil {
			run = runs.Items[0].Name
		}
		return err
	})
	r.AwaitEnd(run)
	started := s.requireFound(contract.KindPlanStart, plan)
	r.T.Logf("the Schedule %s (%d bytes) has started %s (%d bytes), which has made %s", id, len(id), started, len(started), run)
	s.requireWhole(contract.KindPlan, plan)
	require.NoError(r.T, r.Tenant.Delete(r.T.Context(), plan))
	r.Await(func(ctx context.Context) error {
		_, err := schedule.Describe(ctx)
		if err == nil {
			return errors.New("the Schedule is still there")
		}
		if connect.NotFound(err) {
			return nil
		}
		return err
	})
}

// refusesALongerPlan requires that a tenant is shown why a plan cannot have a longer name.
func (r *rig) refusesALongerPlan() {
	r.T.Helper()
	plan := &holdfastv1alpha1.BackupPlan{ObjectMeta: metav1.ObjectMeta{Namespace: r.Name, Name: longestPlan + "p"}}
	plan.Spec.Schedule = "0 2 1 1 *"
	plan.Spec.Template.Spec.BackupSpec = &velerov1.BackupSpec{SnapshotVolumes: ptr.To(false)}
	err := r.Tenant.Create(r.T.Context(), plan)
	require.ErrorContains(r.T, err, "metadata.name may have 63 characters at most, because it is a label of the plan's backups")
}

// awaitEvent waits for an Event of an object: its name is made of the object's, if that leaves room.
func (r *rig) awaitEvent(object client.Object) {
	r.T.Helper()
	r.Await(func(ctx context.Context) error {
		var list eventsv1.EventList
		if err := r.Admin.List(ctx, &list, client.InNamespace(r.Name)); err != nil {
			return err
		}
		for i := range list.Items {
			if list.Items[i].Regarding.UID == object.GetUID() {
				return nil
			}
		}
		return fmt.Errorf("there is no Event of %s among %d", object.GetName(), len(list.Items))
	})
}

// requireWhole requires that the workflow of an object is found by the object's names, and that its summary has them whole.
func (s *store) requireWhole(kind contract.Kind, object client.Object) {
	s.t.Helper()
	id := s.requireFound(kind, object)
	s.t.Logf("%s (%d bytes)", id, len(id))
	described, err := s.temporal.DescribeWorkflowExecution(s.t.Context(), id, "")
	require.NoError(s.t, err)
	var summary string
	require.NoError(s.t, converter.GetDefaultDataConverter().FromPayload(
		described.GetExecutionConfig().GetUserMetadata().GetSummary(), &summary))
	assert.Equal(s.t, kind.Summary+" "+refOf(object).String(), summary)
}

// requireFound requires that a workflow of an object is found by the object's names and the beginning of its ID, and returns that.
func (s *store) requireFound(kind contract.Kind, object client.Object) string {
	s.t.Helper()
	name := object.GetName()
	query := fmt.Sprintf("WorkflowType = '%s' AND HoldfastCluster = '%s' AND HoldfastNamespace = '%s' AND HoldfastName = '%s'",
		kind.Workflow, longestCluster, longestRef.Namespace, name)
	query += fmt.Sprintf(" AND WorkflowId STARTS_WITH '%s/%s/%s/%s'", longestCluster, kind.ID, longestRef.Namespace, name[:40])
	id := s.awaitListed(query, contract.WorkflowID(longestCluster, kind, refOf(object)))
	assert.LessOrEqual(s.t, len(id), contract.MaxIDBytes)
	return id
}

// awaitListed waits until a query finds a workflow whose ID begins so: Temporal adds the time to what a Schedule starts.
func (s *store) awaitListed(query, id string) (found string) {
	s.t.Helper()
	tenants.Await(s.t, func(ctx context.Context) error {
		runs, err := s.list(ctx, query)
		for _, run := range runs {
			if found = run.GetExecution().GetWorkflowId(); strings.HasPrefix(found, id) {
				return nil
			}
		}
		if err == nil {
			err = fmt.Errorf("visibility finds %d workflows, and not %s: %s", len(runs), id, query)
		}
		return err
	})
	return found
}

func refOf(object client.Object) contract.ObjectRef {
	return contract.ObjectRef{Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID())}
}

// The coordinators of FoundationDB, serve the longest names. They are found by what is left of a name, and their current
// details have it whole.
func TestTheLongestNamesOfFoundationDB(t *testing.T) {
	s := newStore(onSharedStack(t, "fdb-names"))
	served := worker.New(s.temporal, contract.SharedTaskQueue, worker.Options{})
	workflows.RegisterQueue(served, contract.QueueShared, call.Options{})
	(&coordination.Activities{Temporal: s.temporal}).RegisterShared(served)
	require.NoError(t, served.Start())
	t.Cleanup(served.Stop)
	user := contract.WorkflowID(longestCluster, contract.KindFDBBackup, contract.ObjectRef{
		Namespace: longestRef.Namespace, Name: long("f", 63), UID: longestRef.UID,
	})
	person := longestCluster + ", " + longestRef.Namespace + "/" + long("f", 63)
	for name, coordinator := range map[string]struct {
		connect.Workflow
		update          string
		request, answer any
		whole           string
	}{
		"the guard of a container": {
			connect.FDBContainer(longestContainer), contract.UpdateFDBContainer, contract.FDBContainerRequest{
				Container: longestContainer, Action: contract.FDBContainerUse,
				User: contract.FDBContainerUser{WorkflowID: user, Name: person, Cluster: longestCluster, Namespace: longestRef.Namespace},
			}, &contract.FDBContainerAnswer{}, longestContainer,
		},
		"the owner of a cluster": {
			connect.FDBCluster(longestFDBCluster), contract.UpdateFDBCluster, contract.FDBCommandRequest{
				Cluster: longestFDBCluster, Member: contract.FDBMember{WorkflowID: user, Name: person},
			}, &contract.FDBCommandAnswer{}, person,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &store{t, s.temporal}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.NoError(t, coordinator.UpdateWithStart(ctx, s.temporal, uuid.NewString(), coordinator.update,
				coordinator.request, coordinator.answer))
			id := coordinator.Options.ID
			t.Cleanup(func() { _ = s.temporal.TerminateWorkflow(context.Background(), id, "", "the test has ended") })
			t.Logf("%s (%d bytes)", id, len(id))
			assert.Len(t, id, contract.MaxIDBytes)
			shown, ok := coordinator.Options.TypedSearchAttributes.GetKeyword(contract.AttributeName)
			require.True(t, ok)
			s.awaitListed(fmt.Sprintf("HoldfastName = '%s' AND WorkflowId STARTS_WITH '%s'", shown, id[:200]), id)
			assert.Contains(t, s.details(id), coordinator.whole)
		})
	}
}

// details are the current details of a workflow.
func (s *store) details(id string) string {
	s.t.Helper()
	var metadata sdkpb.WorkflowMetadata
	tenants.Await(s.t, func(ctx context.Context) error {
		answer, err := s.temporal.QueryWorkflow(ctx, id, "", connect.QueryMetadata)
		if err == nil {
			err = answer.Get(&metadata)
		}
		return err
	})
	return metadata.GetCurrentDetails()
}
