package workflows_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/location"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/contract"
)

// secretMark is in the credentials of every test, and must be nowhere else.
const secretMark = "wJalrXUtnFEMI"

type (
	request  = oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest
	veleroLS = velerov1.BackupStorageLocationSpec
)

// place returns a world with a location, its Secret, and the policy's switch.
func place(t *testing.T, approval bool, objects ...client.Object) *fake.World {
	t.Helper()
	world := fake.New(t, append(objects, fake.NaBSL(name), fake.Secret(fake.SecretName, fake.Credentials(secretMark)))...)
	world.RequireApproval(approval)
	return world
}

func newRun(world *fake.World) *scenario {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	s := &scenario{TestWorkflowEnvironment: newEnvironment(suite), world: world}
	s.SetTestTimeout(5 * time.Second)
	workflows.Register(s, workflows.Options{})
	world.Backups.Register(s)
	world.Locations.Register(s)
	steps := 0
	s.SetOnLocalActivityStartedListener(func(*activity.Info, context.Context, []any) {
		if steps++; steps > maxSteps {
			s.CancelWorkflow() // it turns in circles
		}
	})
	return s
}

// maxSteps is more than any event takes.
const maxSteps = 60

// serveLocation runs the location's workflow to its end.
func serveLocation(world *fake.World, during ...func(*scenario)) error {
	s := newRun(world)
	for _, do := range during {
		do(s)
	}
	s.ExecuteWorkflow(contract.KindLocation.Workflow, contract.ObjectInput{Cluster: fake.Cluster, Ref: fake.Ref(name)})
	if !s.IsWorkflowCompleted() {
		return errors.New("the workflow of the location does not end")
	}
	return s.GetWorkflowError()
}

// serveApproval runs the approval's workflow until it closes or, a minute later, waits: it continues as new then.
func serveApproval(world *fake.World, during ...func(*scenario)) error {
	s := newRun(world)
	for _, do := range during {
		do(s)
	}
	s.RegisterDelayedCallback(func() {
		s.SetContinueAsNewSuggested(true)
		s.SignalWorkflow(contract.SignalChanged, contract.Changed{})
	}, time.Minute)
	s.ExecuteWorkflow(contract.KindApproval.Workflow, contract.ObjectInput{Cluster: fake.Cluster, Ref: fake.Ref(name)})
	if !s.IsWorkflowCompleted() {
		return errors.New("the workflow of the approval does not wait")
	}
	var next *workflow.ContinueAsNewError
	if err := s.GetWorkflowError(); !errors.As(err, &next) {
		return err
	}
	return nil
}

// settle runs both workflows as the watcher would have them run after an event, until nothing is left to do. It fails
// unless worker and watcher agree that this is so.
func settle(t *testing.T, world *fake.World) {
	t.Helper()
	require.NoError(t, settled(world))
	for title, blind := range map[string]bool{"worker": false, "watcher": true} {
		objects := world.Gather(name, blind)
		assert.True(t, location.Settled(objects.View()), "settled in the eyes of the %s: %+v", title, objects.View())
		assert.Contains(t, []contract.ApprovalAction{contract.ApprovalWait, contract.ApprovalClose},
			location.NextApproval(objects.Approval()), "approval in the eyes of the %s: %+v", title, objects.Approval())
	}
	tellsNoSecret(t, world)
}

func settled(world *fake.World) error {
	for round := range 10 {
		objects := world.Gather(name, false)
		busy := round == 0 // the event
		if round == 0 || !location.Settled(objects.View()) {
			busy = true
			if err := serveLocation(world); err != nil {
				return err
			}
		}
		approval := world.Gather(name, false).Approval()
		next := location.NextApproval(approval)
		if approval.Needed && approval.Found && (round == 0 || next != contract.ApprovalWait) {
			busy = true
			if err := serveApproval(world); err != nil {
				return err
			}
		}
		if !busy {
			return nil
		}
	}
	return errors.New("the workflows never come to rest")
}

// tellsNoSecret looks for the credentials in all that a tenant or an operator can read.
func tellsNoSecret(t *testing.T, world *fake.World) {
	t.Helper()
	for len(world.Events) > 0 {
		assert.NotContains(t, <-world.Events, secretMark)
	}
	if object := world.Location(name); object != nil {
		for _, condition := range object.Status.Conditions {
			assert.NotContains(t, condition.Message, secretMark)
		}
	}
}

// conditions returns those of the location as "Type=Status/Reason".
func conditions(world *fake.World) []string {
	var all []string
	for _, c := range world.Location(name).Status.Conditions {
		all = append(all, c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	return all
}

func message(world *fake.World, kind oadpv1alpha1.NonAdminCondition) string {
	if c := meta.FindStatusCondition(world.Location(name).Status.Conditions, string(kind)); c != nil {
		return c.Message
	}
	return ""
}

func decide(decision oadpv1alpha1.ApprovalDecision) func(*fake.World) {
	return func(w *fake.World) {
		w.Decide(name, func(r *request) { r.Spec.PendingApprovalDecision = decision })
	}
}

func revoke(w *fake.World) {
	w.Decide(name, func(r *request) { r.Spec.RevokeApprovedSpec = true })
}

func editLocation(edit func(*veleroLS)) func(*fake.World) {
	return func(w *fake.World) { w.EditLocation(name, edit) }
}

func bucket(bucket string) func(*veleroLS) {
	return func(spec *veleroLS) { spec.ObjectStorage.Bucket = bucket }
}

func credential(secret string) func(*veleroLS) {
	return func(spec *veleroLS) { spec.Credential.Name = secret }
}

// approved returns a world in which the location was asked about, approved and made.
func approved(t *testing.T, objects ...client.Object) *fake.World {
	t.Helper()
	world := place(t, true, objects...)
	settle(t, world)
	decide("approve")(world)
	settle(t, world)
	require.NotNil(t, world.VeleroLocation(name))
	return world
}

// removeLocation deletes the location as its tenant does.
func removeLocation(w *fake.World) {
	w.Remove(&oadpv1alpha1.NonAdminBackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: name}})
}

// bucketOf returns the bucket of the Velero BackupStorageLocation; empty if there is none.
func bucketOf(world *fake.World) string {
	if made := world.VeleroLocation(name); made != nil {
		return made.Spec.ObjectStorage.Bucket
	}
	return ""
}

// copied returns the mark of the credentials in the copy of the Secret; empty if there is none.
func copied(world *fake.World) string {
	made := world.Copy(name)
	if made == nil {
		return ""
	}
	_, mark, _ := strings.Cut(string(made.Data[fake.SecretKey]), "aws_secret_access_key=")
	return strings.TrimSpace(mark)
}
