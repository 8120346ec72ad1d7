package location_test

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/location"
)

const secretMark = "wJalrXUtnFEMI"

// allLocation are the activities in the order in which a location meets them.
var allLocation = []string{
	contract.RefreshLocation.Name, contract.AdmitLocation.Name, contract.SyncLocation.Name,
	contract.WithdrawLocation.Name, contract.DeleteLocation.Name, contract.ReleaseLocation.Name,
}

var allApproval = []string{contract.RefreshApproval.Name, contract.AdvanceApproval.Name}

// locationActivity runs an activity under its wire name, as a worker does.
func locationActivity(t *testing.T, w *fake.World, name string, step, into any) error {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	w.Locations.Register(env)
	answer, err := env.ExecuteActivity(name, step)
	if err == nil {
		require.NoError(t, answer.Get(into))
	}
	return err
}

func locate(t *testing.T, w *fake.World, activities ...string) contract.LocationView {
	t.Helper()
	var view contract.LocationView
	for _, activity := range activities {
		require.NoError(t, locationActivity(t, w, activity, contract.ObjectStep{Ref: fake.Ref(activitytest.Name)}, &view), activity)
	}
	return view
}

func advance(t *testing.T, w *fake.World) contract.ApprovalView {
	t.Helper()
	var view contract.ApprovalView
	for range 3 {
		require.NoError(t, locationActivity(t, w, contract.AdvanceApproval.Name, contract.ObjectStep{Ref: fake.Ref(activitytest.Name)}, &view))
	}
	return view
}

func newPlace(t *testing.T, approval bool) *fake.World {
	t.Helper()
	w := fake.New(t, fake.NaBSL(activitytest.Name), fake.Secret(fake.SecretName, fake.Credentials(secretMark)))
	w.RequireApproval(approval)
	return w
}

func TestALocationThatIsAsItShouldBeIsNotWritten(t *testing.T) {
	for title, approval := range map[string]bool{"without approval": false, "with approval": true} {
		t.Run(title, func(t *testing.T) {
			w := newPlace(t, approval)
			view := locate(t, w, allLocation...)
			assert.Equal(t, !approval, view.InForce)
			advance(t, w)
			view = locate(t, w, contract.SyncLocation.Name, contract.RefreshLocation.Name)
			assert.True(t, location.Settled(view), "%+v", view)
			activitytest.Events(w)
			assert.Empty(t, activitytest.WritesOf(w, func() {
				locate(t, w, allLocation...)
				advance(t, w)
			}))
			assert.Empty(t, activitytest.Events(w), "nothing new to tell")
		})
	}
}

// readsOf are the kinds that a Gatherer reads, in order.
type readsOf struct {
	client.Reader
	kinds []string
}

func (r *readsOf) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	r.kinds = append(r.kinds, reflect.TypeOf(into).Elem().Name())
	return r.Reader.Get(ctx, key, into, options...)
}

func TestAPassReadsWhatBelongsToALocationOnce(t *testing.T) {
	w := newPlace(t, true)
	locate(t, w, allLocation...)
	advance(t, w)
	locate(t, w, contract.SyncLocation.Name, contract.RefreshLocation.Name)
	pass := []string{
		"NonAdminBackupStorageLocation", "BackupStorageLocation", "Secret", // the copy
		"NonAdminBackupStorageLocationApprovalRequest", "Secret", // the tenant's
	}
	for activity, passes := range map[string]int{
		contract.RefreshLocation.Name: 1,
		contract.SyncLocation.Name:    2, // before and after what it may write
	} {
		reads := &readsOf{Reader: w.Client}
		w.Locations.Gatherer.Reader = reads
		locate(t, w, activity)
		assert.Equal(t, slices.Repeat(pass, passes), reads.kinds, activity)
	}
}

func TestNothingIsDoneForALocationThatIsNotThere(t *testing.T) {
	for title, ref := range map[string]contract.ObjectRef{
		"none": fake.Ref("other"), "of another UID": {Namespace: fake.Namespace, Name: activitytest.Name, UID: "before"},
	} {
		t.Run(title, func(t *testing.T) {
			w := newPlace(t, false)
			for _, activity := range allLocation {
				view := contract.LocationView{Found: true}
				require.NoError(t, locationActivity(t, w, activity, contract.ObjectStep{Ref: ref}, &view))
				assert.Equal(t, contract.LocationView{}, view)
			}
			for _, activity := range allApproval {
				view := contract.ApprovalView{Found: true}
				require.NoError(t, locationActivity(t, w, activity, contract.ObjectStep{Ref: ref}, &view))
				assert.Equal(t, contract.ApprovalView{}, view)
			}
			assert.Empty(t, w.Writes())
		})
	}
}

// What is not due, because the world has changed since the workflow looked, is not done.
func TestStepsOfALocationThatAreNotDueDoNothing(t *testing.T) {
	w := newPlace(t, false)
	locate(t, w, contract.AdmitLocation.Name, contract.SyncLocation.Name, contract.SyncLocation.Name)
	assert.Empty(t, activitytest.WritesOf(w, func() {
		locate(t, w, contract.WithdrawLocation.Name, contract.DeleteLocation.Name, contract.ReleaseLocation.Name)
	}), "it is in force and not being deleted")
	w.Remove(w.Location(activitytest.Name))
	assert.Empty(t, activitytest.WritesOf(w, func() {
		locate(t, w, contract.AdmitLocation.Name, contract.SyncLocation.Name, contract.WithdrawLocation.Name,
			contract.ReleaseLocation.Name)
	}), "it is being deleted, and something remains")
}

func TestLocationsWaitWhileAnotherControllerServesThem(t *testing.T) {
	w := newPlace(t, true)
	w.Locations.Paused = func() error { return fake.ErrAway }
	for _, activity := range append(append([]string{contract.DecideApproval.Name}, allLocation...), allApproval...) {
		err := locationActivity(t, w, activity, contract.ObjectStep{Ref: fake.Ref(activitytest.Name)}, nil)
		activitytest.RequireError(t, err, contract.ErrorPaused, true)
	}
	assert.Empty(t, w.Writes())
}

func TestErrorsOfLocationsHaveTheirType(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"away":               {fake.ErrAway, contract.ErrorKubernetes},
		"forbidden":          {activitytest.ErrForbidden, contract.ErrorAccessDenied},
		"the policy is lost": {&check.UnusableError{Origin: "ConfigMap", Err: fake.ErrAway}, contract.ErrorPolicyUnusable},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newPlace(t, true)
			if test.want == contract.ErrorPolicyUnusable {
				w.PolicyErr = test.err
			} else {
				w.FailReads(func(runtime.Object) error { return test.err })
			}
			for _, activity := range append(append([]string{}, allLocation...), allApproval...) {
				activitytest.RequireError(t, locationActivity(t, w, activity, contract.ObjectStep{Ref: fake.Ref(activitytest.Name)}, nil), test.want, true)
			}
		})
	}
}

// The API server's complaint about a Secret may quote what is in it.
func TestAnErrorAboutASecretDoesNotHoldItsContent(t *testing.T) {
	w := newPlace(t, false)
	w.Fail(func(_ string, object client.Object) error {
		secret, is := object.(*corev1.Secret)
		if !is {
			return nil
		}
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Secret").GroupKind(), secret.Name, field.ErrorList{
			field.Invalid(field.NewPath("data"), string(secret.Data[fake.SecretKey]), "must be something else"),
		})
	})
	locate(t, w, contract.AdmitLocation.Name)
	err := locationActivity(t, w, contract.SyncLocation.Name, contract.ObjectStep{Ref: fake.Ref(activitytest.Name)}, nil)
	activitytest.RequireError(t, err, contract.ErrorInvalidObject, false)
	assert.NotContains(t, err.Error(), secretMark)
	assert.Contains(t, err.Error(), "does not accept the Secret")
	for _, event := range activitytest.Events(w) {
		assert.NotContains(t, event, secretMark)
	}
}

// Velero calls a location Unavailable for a minute of which it sees the Secret later: the workflow waits between the two.
func TestTheCopyOfASecretIsMadeAStepBeforeItsLocation(t *testing.T) {
	w := newPlace(t, false)
	view := locate(t, w, contract.AdmitLocation.Name, contract.SyncLocation.Name)
	assert.True(t, view.CopyMade && !view.Synced && !view.Velero.Exists)
	assert.NotNil(t, w.Copy(activitytest.Name))
	view = locate(t, w, contract.SyncLocation.Name)
	assert.True(t, !view.CopyMade && view.Synced && view.Velero.Exists)
	w.Rotate(fake.SecretName, fake.Credentials("Second"))
	view = locate(t, w, contract.SyncLocation.Name)
	assert.True(t, !view.CopyMade && view.Synced, "Velero has seen it before")
}

// Velero validates a location with validationFrequency 0 once, and would not see corrected keys (velero#4485, #7831).
func TestALocationThatIsValidatedOnceIsValidatedForEachSecret(t *testing.T) {
	w := newPlace(t, false)
	w.EditLocation(activitytest.Name, func(spec *velerov1.BackupStorageLocationSpec) { spec.ValidationFrequency = &metav1.Duration{} })
	locate(t, w, contract.AdmitLocation.Name, contract.SyncLocation.Name, contract.SyncLocation.Name)
	validated := func() bool { return w.VeleroLocation(activitytest.Name).Status.LastValidationTime != nil }
	validate := func() {
		made := w.VeleroLocation(activitytest.Name)
		made.Status.LastValidationTime = &metav1.Time{Time: time.Unix(1, 0)}
		require.NoError(t, w.Client.Update(t.Context(), made))
	}
	validate()
	assert.True(t, locate(t, w, contract.RefreshLocation.Name).Synced)
	w.Rotate(fake.SecretName, fake.Credentials("Second"))
	view := locate(t, w, contract.SyncLocation.Name)
	assert.True(t, view.CopyMade && !view.Synced && validated(), "Velero has to see the copy before")
	assert.True(t, locate(t, w, contract.SyncLocation.Name).Synced)
	assert.False(t, validated(), "Velero is to do so once more")
	w.Rotate(fake.SecretName, fake.Credentials("Third"))
	locate(t, w, contract.SyncLocation.Name)
	assert.True(t, locate(t, w, contract.RefreshLocation.Name).Synced, "Velero is at it, with whichever Secret: wait")
	validate()
	assert.False(t, locate(t, w, contract.RefreshLocation.Name).Synced)
	assert.True(t, locate(t, w, contract.SyncLocation.Name).Synced)
	assert.False(t, validated())
	validate()
	assert.Empty(t, activitytest.WritesOf(w, func() { locate(t, w, allLocation...) }))
	assert.True(t, validated())
}

// Somebody made the copy immutable: it is recreated, as the Secret of its tenant goes on.
func TestAnImmutableCopyIsRecreated(t *testing.T) {
	w := newPlace(t, false)
	locate(t, w, contract.AdmitLocation.Name, contract.SyncLocation.Name, contract.SyncLocation.Name)
	w.Rotate(fake.SecretName, fake.Credentials("Second"))
	w.Fail(func(verb string, object client.Object) error {
		if _, is := object.(*corev1.Secret); is && verb == "patch" {
			return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Secret").GroupKind(), "x", field.ErrorList{
				field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"),
			})
		}
		return nil
	})
	view := locate(t, w, contract.SyncLocation.Name)
	assert.True(t, view.Synced)
	assert.Contains(t, string(w.Copy(activitytest.Name).Data[fake.SecretKey]), "Second")
}

// Who waits for the condition decides as soon as he sees it.
func TestPendingIsShownWhenItCanBeDecided(t *testing.T) {
	w := newPlace(t, true)
	told := func() string {
		condition := meta.FindStatusCondition(w.Location(activitytest.Name).Status.Conditions, "ClusterAdminApproved")
		if condition == nil {
			return ""
		}
		return condition.Reason
	}
	unasked := func() {
		view := locate(t, w, contract.AdmitLocation.Name)
		assert.Equal(t, contract.ApprovalNotRequested, view.Approval)
		assert.Empty(t, told())
		assert.Equal(t, "BackingOff", view.Phase)
		assert.True(t, location.Settled(view), "what comes next is the approval's")
	}
	asked := func() {
		assert.True(t, advance(t, w).HasPending)
		assert.False(t, location.Settled(w.Gather(activitytest.Name, true).View()), "the watcher sees that there is something to show")
		locate(t, w, contract.RefreshLocation.Name)
		assert.Equal(t, "BslSpecApprovalPending", told())
	}
	unasked()
	asked()
	w.EditLocation(activitytest.Name, func(spec *velerov1.BackupStorageLocationSpec) { spec.ObjectStorage.Prefix = "another" })
	unasked()
	asked()
	w.Decide(activitytest.Name, func(r *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest) {
		r.Spec.PendingApprovalDecision = oadpv1alpha1.ApprovalDecisionApprove
	})
	advance(t, w)
	locate(t, w, contract.RefreshLocation.Name)
	assert.Equal(t, "BslSpecApproved", told())
	w.EditLocation(activitytest.Name, func(spec *velerov1.BackupStorageLocationSpec) { spec.ObjectStorage.Prefix = "a third" })
	locate(t, w, contract.AdmitLocation.Name)
	assert.Empty(t, told(), "what was said is not about this spec")
	w.Remove(w.ApprovalRequest(activitytest.Name))
	unasked()
}

func TestATenantIsToldWhatBecomesOfItsLocation(t *testing.T) {
	w := newPlace(t, true)
	locate(t, w, contract.AdmitLocation.Name)
	advance(t, w)
	locate(t, w, contract.RefreshLocation.Name)
	events := strings.Join(activitytest.Events(w), "\n")
	assert.Contains(t, events, "Normal BslSpecValidation")
	assert.Contains(t, events, "Normal BslSpecApprovalPending")
	w.RequireApproval(false)
	locate(t, w, contract.AdmitLocation.Name, contract.SyncLocation.Name, contract.SyncLocation.Name)
	events = strings.Join(activitytest.Events(w), "\n")
	assert.Contains(t, events, "Normal SecretCreated")
	assert.Contains(t, events, "Normal BackupStorageLocationCreated")
	w.Validate(activitytest.Name, velerov1.BackupStorageLocationPhaseUnavailable, "AccessDenied by the store")
	locate(t, w, contract.RefreshLocation.Name)
	w.Validate(activitytest.Name, velerov1.BackupStorageLocationPhaseAvailable, "")
	locate(t, w, contract.RefreshLocation.Name)
	events = strings.Join(activitytest.Events(w), "\n")
	assert.Contains(t, events, "Warning LocationUnavailable Velero does not reach the location: AccessDenied by the store")
	assert.Contains(t, events, "Normal LocationAvailable")
	w.Remove(w.Location(activitytest.Name))
	locate(t, w, contract.DeleteLocation.Name, contract.ReleaseLocation.Name)
	events = strings.Join(activitytest.Events(w), "\n")
	assert.Contains(t, events, "their data stay in the bucket")
	assert.Contains(t, events, "nothing is left of the location in the cluster")
}
