package operations_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// scene is one Kubernetes cluster ID, and so a task queue, with a tenant.
type scene struct {
	t         *testing.T
	cluster   string
	namespace string
	temporal  temporalclient.Client
}

func newScene(t *testing.T, name string, options temporalclient.Options) *scene {
	t.Helper()
	options.HostPort, options.Logger = stack.TemporalAddress(), env.QuietLogger()
	temporal, err := temporalclient.Dial(options)
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	s := &scene{t: t, cluster: name, namespace: fmt.Sprintf("%s-%06x", name, rand.IntN(1<<24)), temporal: temporal}
	require.NoError(t, stack.CreateTenant(t.Context(), s.namespace, "alice"))
	return s
}

func (s *scene) backUp(name string) *oadpv1alpha1.NonAdminBackup {
	s.t.Helper()
	nab := &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec:       oadpv1alpha1.NonAdminBackupSpec{BackupSpec: &velerov1.BackupSpec{SnapshotVolumes: ptr.To(false)}},
	}
	require.NoError(s.t, admin.Create(s.t.Context(), nab))
	return nab
}

func (s *scene) workflowID(nab *oadpv1alpha1.NonAdminBackup) string {
	return contract.WorkflowID(s.cluster, contract.KindBackup,
		contract.ObjectRef{Namespace: nab.Namespace, Name: nab.Name, UID: string(nab.UID)})
}

// awaitVelero waits for the Velero Backup made for the object, and for the object to say so.
func (s *scene) awaitVelero(nab *oadpv1alpha1.NonAdminBackup) *velerov1.Backup {
	s.t.Helper()
	backup := &velerov1.Backup{}
	require.EventuallyWithT(s.t, func(c *assert.CollectT) {
		now := &oadpv1alpha1.NonAdminBackup{}
		require.NoError(c, admin.Get(context.Background(), client.ObjectKeyFromObject(nab), now))
		require.Equal(c, oadpv1alpha1.NonAdminPhaseCreated, now.Status.Phase)
		require.NotNil(c, now.Status.VeleroBackup)
		require.NoError(c, admin.Get(context.Background(),
			client.ObjectKey{Namespace: env.OADPNamespace, Name: now.Status.VeleroBackup.Name}, backup))
	}, patience, tick)
	return backup
}

// complete does what Velero does at the end of a backup.
func (s *scene) complete(backup *velerov1.Backup) {
	s.t.Helper()
	before := client.MergeFrom(backup.DeepCopy())
	now := metav1.Now()
	backup.Status = velerov1.BackupStatus{
		Version: 1, FormatVersion: "1.1.0", Phase: velerov1.BackupPhaseCompleted, StartTimestamp: &now, CompletionTimestamp: &now,
	}
	require.NoError(s.t, admin.Patch(s.t.Context(), backup, before))
}

// awaitCompleted waits until the object tells of the completion and its workflow has ended.
func (s *scene) awaitCompleted(nab *oadpv1alpha1.NonAdminBackup) *workflowservice.DescribeWorkflowExecutionResponse {
	s.t.Helper()
	var described *workflowservice.DescribeWorkflowExecutionResponse
	require.EventuallyWithT(s.t, func(c *assert.CollectT) {
		now := &oadpv1alpha1.NonAdminBackup{}
		require.NoError(c, admin.Get(context.Background(), client.ObjectKeyFromObject(nab), now))
		require.NotNil(c, now.Status.VeleroBackup)
		require.NotNil(c, now.Status.VeleroBackup.Status)
		require.Equal(c, velerov1.BackupPhaseCompleted, now.Status.VeleroBackup.Status.Phase)
		described = s.describe(c, nab)
		require.Equal(c, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, described.WorkflowExecutionInfo.Status)
	}, patience, tick)
	s.t.Logf("history of %s: %d events, %d bytes", nab.Name, described.WorkflowExecutionInfo.HistoryLength,
		described.WorkflowExecutionInfo.HistorySizeBytes)
	return described
}

func (s *scene) describe(t require.TestingT, nab *oadpv1alpha1.NonAdminBackup) *workflowservice.DescribeWorkflowExecutionResponse {
	described, err := s.temporal.DescribeWorkflowExecution(context.Background(), s.workflowID(nab), "")
	require.NoError(t, err)
	return described
}

func (s *scene) signal(nab *oadpv1alpha1.NonAdminBackup) {
	s.t.Helper()
	require.NoError(s.t, s.temporal.SignalWorkflow(s.t.Context(), s.workflowID(nab), "", contract.SignalChanged,
		contract.Changed{Reason: "test"}))
}

// history returns the events of the latest run.
func (s *scene) history(nab *oadpv1alpha1.NonAdminBackup) []*historypb.HistoryEvent {
	s.t.Helper()
	return s.events(s.workflowID(nab))
}

func (s *scene) events(workflowID string) []*historypb.HistoryEvent {
	s.t.Helper()
	var events []*historypb.HistoryEvent
	history := s.temporal.GetWorkflowHistory(context.Background(), workflowID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(s.t, err)
		events = append(events, event)
	}
	return events
}

func count(events []*historypb.HistoryEvent, kind enumspb.EventType) int {
	total := 0
	for _, event := range events {
		if event.EventType == kind {
			total++
		}
	}
	return total
}
