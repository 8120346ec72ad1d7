package workflowtest

import (
	"context"
	"testing"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

// ErrKilled ends an activity as the kill of its worker does.
var ErrKilled = temporal.NewNonRetryableApplicationError("killed", "Killed", nil)

// Backup is the name of the NonAdminBackup.
const Backup = "nightly"

// Scenario is a workflow over a world in memory. Script entries happen at their time; each is followed by a signal.
type Scenario struct {
	*testsuite.TestWorkflowEnvironment
	World *fake.World
}

// NewScenario returns an environment over a world with those objects.
func NewScenario(t *testing.T, objects ...client.Object) *Scenario {
	t.Helper()
	s := &Scenario{
		TestWorkflowEnvironment: environment.New(&testsuite.WorkflowTestSuite{}),
		World:                   fake.New(t, objects...),
	}
	workflows.Register(s, call.Options{})
	s.World.Backups.Register(s)
	return s
}

// After changes the world and signals the workflow.
func (s *Scenario) After(delay time.Duration, do func(*fake.World)) {
	s.RegisterDelayedCallback(func() {
		do(s.World)
		s.SignalWorkflow(contract.SignalChanged, contract.Changed{})
	}, delay)
}

// Velero writes that phase into the Velero Backup.
func Velero(phase velerov1.BackupPhase) func(*fake.World) {
	return func(w *fake.World) { w.SetVelero(fake.VeleroName(Backup), phase) }
}

// RemoveNamespace lets the tenant's namespace terminate.
func RemoveNamespace(w *fake.World) {
	_ = w.Client.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace}})
}
