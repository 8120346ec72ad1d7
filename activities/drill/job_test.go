package drill_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/workflows/contract"
)

// restored brings the drill to its first check.
func (s *scene) restored() {
	s.t.Helper()
	s.steps(contract.AdmitDrill.Name)
	s.makeNamespace()
	s.steps(contract.StartDrillRestore.Name)
	s.backedUp(objectstore.ResourceList{"v1/ConfigMap": {"team/a"}})
	s.velero(velerov1.RestorePhaseCompleted, objectstore.ResourceList{"v1/ConfigMap": {s.name() + "/a(created)"}}, nil)
}

func (s *scene) check(name string, in contract.DrillStep) error {
	s.t.Helper()
	in.Check = name
	_, err := s.step(contract.CheckDrill.Name, in)
	return err
}

// found are the findings: those that fail, and those about what is not verified.
func (s *scene) found() (failed, notVerified []string) {
	s.t.Helper()
	for _, finding := range s.status().Findings {
		if finding.Result == holdfastv1alpha1.DrillFailed {
			failed = append(failed, finding.Message)
		} else {
			notVerified = append(notVerified, finding.Message)
		}
	}
	return failed, notVerified
}

func jobOf(template string) func(*holdfastv1alpha1.RestoreDrill) {
	return func(d *holdfastv1alpha1.RestoreDrill) {
		no := false
		d.Spec.Checks = holdfastv1alpha1.DrillChecks{
			Objects: &no, WorkloadsReady: &no, Job: &holdfastv1alpha1.DrillJob{Template: runtime.RawExtension{Raw: []byte(template)}},
		}
	}
}

func TestAJobDecides(t *testing.T) {
	ended := func(code int32, printed string) corev1.PodStatus {
		status := corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: printed}},
		}}}
		if code != 0 {
			status.Phase = corev1.PodFailed
		}
		return status
	}
	for title, test := range map[string]struct {
		pod               *corev1.PodStatus
		refused           string
		late              bool
		waits             string
		want, notVerified []string
		verified          string
	}{
		"exit 0":              {pod: &corev1.PodStatus{Phase: corev1.PodSucceeded}, verified: "True"},
		"exit 1":              {pod: func() *corev1.PodStatus { s := ended(1, "3 rows, want 4\n"); return &s }(), want: []string{"the Job's container main ended with exit code 1", "container main printed: 3 rows, want 4"}, verified: "False"},
		"it runs":             {pod: &corev1.PodStatus{Phase: corev1.PodRunning}, waits: "waits for the Job to end"},
		"it runs, late":       {pod: &corev1.PodStatus{Phase: corev1.PodRunning}, late: true, want: []string{"the Job has not ended within 30m"}, verified: "False"},
		"it never ran":        {late: true, notVerified: []string{"the Job did not run: its Pod was not created within 30m"}, verified: "Unknown"},
		"its Pod is refused":  {refused: "violates PodSecurity", notVerified: []string{"the Job was not admitted: violates PodSecurity"}, verified: "Unknown"},
		"its Pod has failed":  {pod: &corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded", Message: "too long"}, want: []string{"the Job's Pod has failed: DeadlineExceeded too long"}, verified: "False"},
		"its Pod was evicted": {pod: &corev1.PodStatus{Phase: corev1.PodFailed, Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByKubelet", Message: "no memory"}}}, notVerified: []string{"the cluster ended the Job's Pod: TerminationByKubelet: no memory"}, verified: "Unknown"},
	} {
		t.Run(title, func(t *testing.T) {
			drill := fake.Drill(weekly, nightly)
			jobOf(`{"spec":{"containers":[{"name":"main","image":"check"}]}}`)(drill)
			s := newScene(t, drill)
			s.restored()
			if test.pod != nil {
				require.NoError(t, s.Client.Create(t.Context(), &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: s.name(), Name: "p", Labels: map[string]string{batchv1.JobNameLabel: s.name()}},
					Status:     *test.pod,
				}))
			}
			if test.late {
				s.after = 30 * time.Minute
			}
			err := s.check(holdfastv1alpha1.CheckJob, contract.DrillStep{Refused: test.refused})
			if test.waits != "" {
				require.ErrorContains(t, err, test.waits)
				return
			}
			require.NoError(t, err)
			failed, notVerified := s.found()
			assert.Equal(t, test.want, failed)
			assert.Equal(t, test.notVerified, notVerified)
			assert.Equal(t, test.verified, s.steps(contract.ConcludeDrill.Name).Verified)
		})
	}
}

func TestATemplateThatIsNoneIsRefused(t *testing.T) {
	for _, template := range []string{`{}`, `{"spec":{"containers":[]}}`, `{"spec":{"containers":[{"name":"a","imagee":"b"}]}}`} {
		drill := fake.Drill(weekly, nightly)
		jobOf(template)(drill)
		s := newScene(t, drill)
		view := s.steps(contract.AdmitDrill.Name)
		assert.True(t, view.Ended, template)
		assert.Contains(t, s.verified().Message, "spec.checks.job.template cannot be used: ", template)
	}
}
