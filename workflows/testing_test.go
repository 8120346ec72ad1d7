package workflows_test

import (
	"testing"
	"time"

	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var errInvalidBackup = apierrors.NewInvalid(velerov1.SchemeGroupVersion.WithKind("Backup").GroupKind(), "b",
	field.ErrorList{field.Invalid(field.NewPath("spec", "ttl"), "x", "must be a duration")})

// newEnvironment returns the suite's. On a busy machine a workflow may not get to run for a second, which is no deadlock.
func newEnvironment(suite *testsuite.WorkflowTestSuite) *testsuite.TestWorkflowEnvironment {
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute})
	return env
}

// reregistration registers activities again, over a world that another run has left.
type reregistration struct{ *scenario }

func (r reregistration) RegisterActivityWithOptions(a any, options activity.RegisterOptions) {
	options.DisableAlreadyRegisteredCheck = true
	r.scenario.RegisterActivityWithOptions(a, options)
}

func (r reregistration) RegisterDynamicActivity(a any, options activity.DynamicRegisterOptions) {
	r.scenario.RegisterDynamicActivity(a, options)
}

func (r reregistration) RegisterNexusService(service *nexus.Service) {
	r.scenario.RegisterNexusService(service)
}

func decode(next *workflow.ContinueAsNewError, into any) error {
	return converter.GetDefaultDataConverter().FromPayloads(next.Input, into)
}

// currentDetails is what the Web UI shows of a running workflow.
func currentDetails(t *testing.T, s *scenario) string {
	t.Helper()
	answer, err := s.QueryWorkflow("__temporal_workflow_metadata")
	require.NoError(t, err)
	var metadata sdkpb.WorkflowMetadata
	require.NoError(t, answer.Get(&metadata))
	return metadata.GetCurrentDetails()
}
