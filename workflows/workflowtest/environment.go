package workflowtest

import (
	"strings"
	"testing"
	"time"

	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ErrInvalidBackup is the answer of an API server that refuses a Velero Backup.
var ErrInvalidBackup = apierrors.NewInvalid(velerov1.SchemeGroupVersion.WithKind("Backup").GroupKind(), "b",
	field.ErrorList{field.Invalid(field.NewPath("spec", "ttl"), "x", "must be a duration")})

// Reregistration registers activities again, over a world that another run has left.
type Reregistration struct{ *Scenario }

// RegisterActivityWithOptions implements worker.ActivityRegistry.
func (r Reregistration) RegisterActivityWithOptions(a any, options activity.RegisterOptions) {
	options.DisableAlreadyRegisteredCheck = true
	r.Scenario.RegisterActivityWithOptions(a, options)
}

// RegisterDynamicActivity implements worker.ActivityRegistry.
func (r Reregistration) RegisterDynamicActivity(a any, options activity.DynamicRegisterOptions) {
	r.Scenario.RegisterDynamicActivity(a, options)
}

// RegisterNexusService implements worker.NexusServiceRegistry.
func (r Reregistration) RegisterNexusService(service *nexus.Service) {
	r.Scenario.RegisterNexusService(service)
}

// Decode reads the input of the run that goes on.
func Decode(next *workflow.ContinueAsNewError, into any) error {
	return converter.GetDefaultDataConverter().FromPayloads(next.Input, into)
}

// CurrentDetails is what the Web UI shows of a running workflow.
func CurrentDetails(t *testing.T, s *Scenario) string {
	t.Helper()
	answer, err := s.QueryWorkflow("__temporal_workflow_metadata")
	require.NoError(t, err)
	var metadata sdkpb.WorkflowMetadata
	require.NoError(t, answer.Get(&metadata))
	return metadata.GetCurrentDetails()
}

// Lab is the ID of a FoundationDB cluster.
const Lab = "lab:8f3k"

// TeamOf is the namespace of a backup: "bank" of "bank-a", and "team" of "a".
func TeamOf(name string) string {
	if namespace, _, found := strings.Cut(name, "-"); found {
		return namespace
	}
	return "team"
}

// Apart keeps what happens apart from what the clock does at the same time.
const Apart = 3 * time.Millisecond
