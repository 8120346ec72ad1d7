package locationtest

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/kstatus"
	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/approval"
	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/location"
	"holdfast.dev/holdfast/workflows/workflowtest"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
)

// SecretMark is in the credentials of every test, and must be nowhere else.
const SecretMark = "wJalrXUtnFEMI"

type (
	// Request is an approval request.
	Request = oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest
	// VeleroLS is the spec of a Velero BackupStorageLocation.
	VeleroLS = velerov1.BackupStorageLocationSpec
)

// Place returns a world with a location, its Secret, and the policy's switch.
func Place(t *testing.T, approval bool, objects ...client.Object) *fake.World {
	t.Helper()
	own := fake.Secret(fake.SecretName, fake.Credentials(SecretMark))
	world := fake.New(t, append(objects, fake.NaBSL(workflowtest.Backup), own)...)
	world.RequireApproval(approval)
	return world
}

// NewRun returns a new environment for a workflow over a world that others have left.
func NewRun(world *fake.World) *workflowtest.Scenario {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	s := &workflowtest.Scenario{TestWorkflowEnvironment: environment.New(suite), World: world}
	workflows.Register(s, call.Options{})
	world.Backups.Register(s)
	world.Locations.Register(s)
	steps := 0
	s.SetOnLocalActivityStartedListener(func(*activity.Info, context.Context, []any) {
		if steps++; steps > maxSteps {
			s.CancelWorkflow() // it loops without an end
		}
	})
	return s
}

// maxSteps is more than any event needs.
const maxSteps = 60

// ServeLocation runs the location's workflow to its end.
func ServeLocation(world *fake.World, during ...func(*workflowtest.Scenario)) error {
	s := NewRun(world)
	for _, do := range during {
		do(s)
	}
	s.ExecuteWorkflow(contract.KindLocation.Workflow,
		contract.ObjectInput{Cluster: fake.Cluster, Ref: fake.Ref(workflowtest.Backup)})
	if !s.IsWorkflowCompleted() {
		return errors.New("the workflow of the location does not end")
	}
	return s.GetWorkflowError()
}

// ServeApproval runs the approval's workflow until it closes or, a minute later, waits: it continues as new then.
func ServeApproval(world *fake.World, during ...func(*workflowtest.Scenario)) error {
	s := NewRun(world)
	for _, do := range during {
		do(s)
	}
	s.RegisterDelayedCallback(func() {
		s.SetContinueAsNewSuggested(true)
		s.SignalWorkflow(contract.SignalChanged, contract.Changed{})
	}, time.Minute)
	s.ExecuteWorkflow(contract.KindApproval.Workflow,
		contract.ObjectInput{Cluster: fake.Cluster, Ref: fake.Ref(workflowtest.Backup)})
	if !s.IsWorkflowCompleted() {
		return errors.New("the workflow of the approval does not wait")
	}
	var next *workflow.ContinueAsNewError
	if err := s.GetWorkflowError(); !errors.As(err, &next) {
		return err
	}
	return nil
}

// Settle runs both workflows as the watcher would have them run after an event, until nothing is left to do. It fails
// unless worker and watcher agree that this is so.
func Settle(t *testing.T, world *fake.World) {
	t.Helper()
	require.NoError(t, Settled(world))
	for title, blind := range map[string]bool{"worker": false, "watcher": true} {
		objects := world.Gather(workflowtest.Backup, blind)
		assert.True(t, location.Settled(objects.View()), "settled in the eyes of the %s: %+v", title, objects.View())
		assert.Contains(t, []contract.ApprovalAction{contract.ApprovalWait, contract.ApprovalClose},
			approval.NextApproval(objects.Approval()), "approval in the eyes of the %s: %+v", title, objects.Approval())
	}
	hidesSecrets(t, world)
}

// Settled runs the workflows of the location until neither has anything left to do.
func Settled(world *fake.World) error {
	for round := range 10 {
		objects := world.Gather(workflowtest.Backup, false)
		busy := round == 0 // the event
		if round == 0 || !location.Settled(objects.View()) {
			busy = true
			if err := ServeLocation(world); err != nil {
				return err
			}
		}
		view := world.Gather(workflowtest.Backup, false).Approval()
		next := approval.NextApproval(view)
		if view.Needed && view.Found && (round == 0 || next != contract.ApprovalWait) {
			busy = true
			if err := ServeApproval(world); err != nil {
				return err
			}
		}
		if !busy {
			return nil
		}
	}
	return errors.New("the workflows never come to rest")
}

// hidesSecrets checks that the credentials are in nothing that a tenant or an operator can read.
func hidesSecrets(t *testing.T, world *fake.World) {
	t.Helper()
	for len(world.Events) > 0 {
		assert.NotContains(t, <-world.Events, SecretMark)
	}
	if object := world.Location(workflowtest.Backup); object != nil {
		for _, condition := range object.Status.Conditions {
			assert.NotContains(t, condition.Message, SecretMark)
		}
	}
}

// Conditions returns those of the location, but for the summary of them, as "Type=Status/Reason".
func Conditions(world *fake.World) []string {
	var all []string
	for _, c := range kstatus.Others(world.Location(workflowtest.Backup).Status.Conditions) {
		all = append(all, c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	return all
}

// Decide writes an administrator's decision.
func Decide(decision oadpv1alpha1.ApprovalDecision) func(*fake.World) {
	return func(w *fake.World) {
		w.Decide(workflowtest.Backup, func(r *Request) { r.Spec.PendingApprovalDecision = decision })
	}
}

// Revoke writes an administrator's revocation.
func Revoke(w *fake.World) {
	w.Decide(workflowtest.Backup, func(r *Request) { r.Spec.RevokeApprovedSpec = true })
}

// EditLocation edits the tenant's spec.
func EditLocation(edit func(*VeleroLS)) func(*fake.World) {
	return func(w *fake.World) { w.EditLocation(workflowtest.Backup, edit) }
}

// Bucket names another bucket.
func Bucket(bucket string) func(*VeleroLS) {
	return func(spec *VeleroLS) { spec.ObjectStorage.Bucket = bucket }
}

// Credential names another Secret.
func Credential(secret string) func(*VeleroLS) {
	return func(spec *VeleroLS) { spec.Credential.Name = secret }
}

// Approved returns a world in which the location was requested, approved and made.
func Approved(t *testing.T, objects ...client.Object) *fake.World {
	t.Helper()
	world := Place(t, true, objects...)
	Settle(t, world)
	Decide("approve")(world)
	Settle(t, world)
	require.NotNil(t, world.VeleroLocation(workflowtest.Backup))
	return world
}

// RemoveLocation deletes the location as its tenant does.
func RemoveLocation(w *fake.World) {
	w.Remove(&oadpv1alpha1.NonAdminBackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: workflowtest.Backup},
	})
}

// BucketOf returns the bucket of the Velero BackupStorageLocation; empty if there is none.
func BucketOf(world *fake.World) string {
	if made := world.VeleroLocation(workflowtest.Backup); made != nil {
		return made.Spec.ObjectStorage.Bucket
	}
	return ""
}

// Copied returns the mark of the credentials in the copy of the Secret; empty if there is none.
func Copied(world *fake.World) string {
	made := world.Copy(workflowtest.Backup)
	if made == nil {
		return ""
	}
	_, mark, _ := strings.Cut(string(made.Data[fake.SecretKey]), "aws_secret_access_key=")
	return strings.TrimSpace(mark)
}

const forbidden = "[default]\naws_access_key_id=AKIA\naws_secret_access_key=" + SecretMark +
	"\ncredential_process=/bin/" + SecretMark + "\n"

// Rotate writes other credentials into the tenant's Secret.
func Rotate(mark string) func(*fake.World) {
	return func(w *fake.World) { w.Rotate(fake.SecretName, fake.Credentials(mark)) }
}

// Forbid writes credentials that no tenant may use.
func Forbid(w *fake.World) { w.Rotate(fake.SecretName, []byte(forbidden)) }

// SwitchApproval switches the policy's approval.
func SwitchApproval(approval bool) func(*fake.World) {
	return func(w *fake.World) { w.RequireApproval(approval) }
}

// AddOtherSecret makes another Secret of the tenant.
func AddOtherSecret(w *fake.World) {
	_ = w.Client.Create(context.Background(), fake.Secret("other", fake.Credentials("Other")))
}
