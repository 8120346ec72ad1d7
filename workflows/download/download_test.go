package download_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/workflow"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

const logs, signedURL = "logs", "https://store/log?signature"

// downloading returns a scenario with a complete backup in the tenant's own location, and a request for its log. Its clock is
// the workflow's.
func downloading(t *testing.T, objects ...client.Object) *workflowtest.Scenario {
	t.Helper()
	s := workflowtest.NewScenario(t, append(objects, fake.NADR(logs, velerov1.DownloadTargetKindBackupLog, workflowtest.Backup))...)
	s.SetStartTime(fake.DownloadTime)
	s.World.Downloads(s.Now).Register(s)
	return s
}

func takenIntoStore() []client.Object {
	return fake.Taken(workflowtest.Backup, fake.StoreLocation, fake.Namespace)
}

func runDownload(t *testing.T, s *workflowtest.Scenario) {
	t.Helper()
	s.ExecuteWorkflow(contract.KindDownload.Workflow, contract.ObjectInput{Cluster: fake.Cluster, Ref: fake.Ref(logs)})
	require.True(t, s.IsWorkflowCompleted())
}

func sign(w *fake.World) { w.SignDownload(logs, signedURL, fake.DownloadTime.Add(10*time.Minute)) }

func TestADownloadIsRequestedAnsweredAndSettles(t *testing.T) {
	s := downloading(t, takenIntoStore()...)
	var details string
	s.RegisterDelayedCallback(func() { details = workflowtest.CurrentDetails(t, s) }, time.Second)
	s.After(2*time.Second, sign)
	runDownload(t, s)
	require.NoError(t, s.GetWorkflowError())
	assert.Contains(t, details, "waits for Velero to answer DownloadRequest `nadr-uid-logs`")
	assert.Equal(t, signedURL, s.World.ReadDownload(logs).Status.VeleroDownloadRequest.Status.DownloadURL)
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseCreated, s.World.ReadDownload(logs).Status.Phase)
	assert.Equal(t, []string{
		"patch status NonAdminDownloadRequest", "create DownloadRequest", "patch status NonAdminDownloadRequest",
	}, s.World.Writes())
	state, err := s.QueryWorkflow(contract.QueryState)
	require.NoError(t, err)
	var seen contract.State[contract.DownloadView]
	require.NoError(t, state.Get(&seen))
	assert.True(t, seen.View.Answered)
}

func TestADownloadLooksForItselfWhenNoSignalComes(t *testing.T) {
	s := downloading(t, takenIntoStore()...)
	s.RegisterDelayedCallback(func() { sign(s.World) }, time.Minute)
	runDownload(t, s)
	require.NoError(t, s.GetWorkflowError())
	assert.NotNil(t, s.World.ReadDownload(logs).Status.VeleroDownloadRequest.Status)
}

func TestEveryDownloadEnds(t *testing.T) {
	drop := func(w *fake.World) { w.Remove(w.ReadDownload(logs)) }
	tests := map[string]struct {
		there    []client.Object
		steps    []func(*fake.World)
		wantLeft bool
	}{
		"refused":                      {wantLeft: true},
		"deleted while Velero is away": {there: takenIntoStore(), steps: []func(*fake.World){drop}},
		"answered at last": {there: takenIntoStore(), steps: []func(*fake.World){
			func(w *fake.World) { w.Remove(w.VeleroDownload(logs)) }, // expired, or removed by an administrator
			sign,
		}, wantLeft: true},
		"for another file": {there: takenIntoStore(), steps: []func(*fake.World){
			func(w *fake.World) {
				w.RetargetDownload(logs, velerov1.DownloadTargetKindBackupResults, workflowtest.Backup)
			},
			sign,
		}, wantLeft: true},
		"for a file that is not there": {there: takenIntoStore(), steps: []func(*fake.World){
			func(w *fake.World) { w.RetargetDownload(logs, velerov1.DownloadTargetKindBackupResults, "weekly") },
		}, wantLeft: true},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := downloading(t, test.there...)
			for i, step := range test.steps {
				s.After(time.Duration(i+1)*time.Second, step)
			}
			runDownload(t, s)
			require.NoError(t, s.GetWorkflowError())
			left := s.World.ReadDownload(logs)
			require.Equal(t, test.wantLeft, left != nil)
			asked := s.World.VeleroDownload(logs)
			answered := left != nil && left.Status.VeleroDownloadRequest.Status != nil
			assert.Equal(t, answered, asked != nil, "nothing is left of what came to nothing")
			if answered {
				assert.Equal(t, left.Spec.Target.Kind, asked.Spec.Target.Kind)
			}
		})
	}
}

func TestADownloadThatNobodyAnswersExpires(t *testing.T) {
	s := downloading(t, takenIntoStore()...)
	runDownload(t, s) // it looks for itself
	require.NoError(t, s.GetWorkflowError())
	assert.Nil(t, s.World.ReadDownload(logs))
	assert.Nil(t, s.World.VeleroDownload(logs))
	assert.GreaterOrEqual(t, s.Now().Sub(fake.DownloadTime), time.Hour)
}

// A signal that comes while the last activity runs must be read before the run ends.
func TestADownloadsLastSignalIsRead(t *testing.T) {
	s := downloading(t, takenIntoStore()...)
	s.After(time.Second, sign)
	told := false
	s.World.Lose(func(_ string, object client.Object) error {
		if request, is := object.(*oadpv1alpha1.NonAdminDownloadRequest); is && !told && request.Status.Phase == "Created" {
			told = true
			s.World.RetargetDownload(logs, velerov1.DownloadTargetKindBackupResults, workflowtest.Backup)
			s.SignalWorkflow(contract.SignalChanged, contract.Changed{})
		}
		return nil
	})
	s.After(10*time.Second, sign)
	runDownload(t, s)
	require.NoError(t, s.GetWorkflowError())
	assert.True(t, told)
	assert.EqualValues(t, "BackupResults", s.World.VeleroDownload(logs).Spec.Target.Kind)
}

func TestADownloadContinuesAsNew(t *testing.T) {
	s := downloading(t, takenIntoStore()...)
	s.SetContinueAsNewSuggested(true)
	runDownload(t, s)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, s.GetWorkflowError(), &next)
	var in contract.ObjectInput
	require.NoError(t, workflowtest.Decode(next, &in))
	assert.Equal(t, contract.ObjectInput{Cluster: fake.Cluster, Ref: fake.Ref(logs), ShownPhase: "New"}, in)
}
