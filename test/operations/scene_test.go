package operations_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

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
	"holdfast.dev/holdfast/k8s/eventually"
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
	eventually.Succeeds(s.t, patience, func() error {
		ctx, cancel := context.WithTimeout(s.t.Context(), callPatience)
		defer cancel()
		now := &oadpv1alpha1.NonAdminBackup{}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(nab), now); err != nil {
			return err
		}
		if now.Status.Phase != oadpv1alpha1.NonAdminPhaseCreated || now.Status.VeleroBackup == nil {
			return fmt.Errorf("%s does not tell of a Velero Backup: %+v", nab.Name, now.Status)
		}
		return admin.Get(ctx, client.ObjectKey{Namespace: env.OADPNamespace, Name: now.Status.VeleroBackup.Name}, backup)
	})
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
	eventually.Succeeds(s.t, patience, func() error {
		ctx, cancel := context.WithTimeout(s.t.Context(), callPatience)
		defer cancel()
		now := &oadpv1alpha1.NonAdminBackup{}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(nab), now); err != nil {
			return err
		}
		made := now.Status.VeleroBackup
		if made == nil || made.Status == nil || made.Status.Phase != velerov1.BackupPhaseCompleted {
			return fmt.Errorf("%s does not tell of the completion: %+v", nab.Name, now.Status)
		}
		var err error
		if described, err = s.description(nab); err != nil {
			return err
		}
		if status := described.WorkflowExecutionInfo.Status; status != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			return fmt.Errorf("the workflow of %s is %s", nab.Name, status)
		}
		return nil
	})
	s.t.Logf("history of %s: %d events, %d bytes", nab.Name, described.WorkflowExecutionInfo.HistoryLength,
		described.WorkflowExecutionInfo.HistorySizeBytes)
	return described
}

// description is what Temporal has of the latest run.
func (s *scene) description(nab *oadpv1alpha1.NonAdminBackup) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callPatience)
	defer cancel()
	return s.temporal.DescribeWorkflowExecution(ctx, s.workflowID(nab), "")
}

func (s *scene) describe(nab *oadpv1alpha1.NonAdminBackup) *workflowservice.DescribeWorkflowExecutionResponse {
	s.t.Helper()
	described, err := s.description(nab)
	require.NoError(s.t, err)
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
	events, err := s.read(workflowID)
	require.NoError(s.t, err)
	return events
}

func (s *scene) read(workflowID string) (events []*historypb.HistoryEvent, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), callPatience)
	defer cancel()
	history := s.temporal.GetWorkflowHistory(ctx, workflowID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			return nil, err
		}
		events = append(events, event)
	}
	return events, nil
}

// awaitHistory waits until the events of the latest run are as wished.
func (s *scene) awaitHistory(nab *oadpv1alpha1.NonAdminBackup, want string, ok func([]*historypb.HistoryEvent) bool) {
	s.t.Helper()
	eventually.Succeeds(s.t, patience, func() error {
		events, err := s.read(s.workflowID(nab))
		if err != nil || ok(events) {
			return err
		}
		return fmt.Errorf("not yet: %s; the history of %s has %d events", want, nab.Name, len(events))
	})
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
