package activitytest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/temporal"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// The NonAdminBackup of the tests, and the name of a Velero Backup that is another's.
const (
	Name    = "nightly"
	Victims = "crew-nightly-f47ac10b-58cc-4372-a567-0e02b2c3d479"
)

// Ours is the name of its Velero Backup.
var Ours = fake.VeleroName(Name)

// Run runs an activity under its wire name, as a worker does.
func Run(t *testing.T, w *fake.World, activity string, step contract.BackupStep) (contract.BackupView, error) {
	t.Helper()
	return Performed[contract.BackupView](t, w.Backups, activity, step)
}

// Do runs activities one after the other, each with attempt 1, and returns the last view.
func Do(t *testing.T, w *fake.World, activities ...string) contract.BackupView {
	t.Helper()
	var view contract.BackupView
	for _, activity := range activities {
		var err error
		view, err = Run(t, w, activity, contract.BackupStep{Ref: fake.Ref(Name), Attempt: 1})
		require.NoError(t, err, activity)
	}
	return view
}

// Created returns a world in which the Velero Backup was made, and Velero has reached the phase.
func Created(t *testing.T, phase velerov1.BackupPhase, objects ...client.Object) *fake.World {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace, Finalizers: []string{"kubernetes"}}}
	w := fake.New(t, append(objects, fake.NAB(Name), namespace)...)
	Do(t, w, contract.StartBackup.Name)
	if phase != "" {
		w.SetVelero(Ours, phase)
		Do(t, w, contract.RefreshBackup.Name)
	}
	Events(w)
	return w
}

// Events empties the channel of Events and returns them.
func Events(w *fake.World) []string {
	var events []string
	for {
		select {
		case event := <-w.Events:
			events = append(events, event)
		default:
			return events
		}
	}
}

// WritesOf returns the writes that do makes.
func WritesOf(w *fake.World, do func()) []string {
	before := len(w.Writes())
	do()
	return w.Writes()[before:]
}

// RequireError requires an application error of that type.
func RequireError(t *testing.T, err error, wantType string, wantRetryable bool) {
	t.Helper()
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	assert.Equal(t, wantType, application.Type(), application.Error())
	assert.Equal(t, wantRetryable, !application.NonRetryable(), "retryable: %v", application)
}

// DeleteBackup requests the deletion of the backup and its data.
func DeleteBackup(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.DeleteBackup = true }

// ForceDelete requests the deletion of the objects alone.
func ForceDelete(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.ForceDeleteBackup = true }

// Answers of an API server.
var (
	ErrNotFound     = apierrors.NewNotFound(oadpv1alpha1.Resource("nonadminbackups"), Name)
	ErrForbidden    = apierrors.NewForbidden(velerov1.Resource("backups"), "b", nil)
	ErrUnauthorized = apierrors.NewUnauthorized("the token has expired")
	ErrTooLarge     = apierrors.NewRequestEntityTooLargeError("limit is 3145728")
	ErrTerminating  = terminating()
)

// terminating is what the API server answers to a creation in a namespace that is being deleted.
func terminating() error {
	err := apierrors.NewForbidden(velerov1.Resource("backups"), "b", nil)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause, Message: "being terminated"}}
	return err
}
