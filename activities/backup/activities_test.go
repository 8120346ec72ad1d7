package backup_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeclient "sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/backup"
	"holdfast.dev/holdfast/workflows/contract"
)

// An activity may run twice, at any time: the second run writes nothing, tells nothing and sees the same.
func TestEveryActivityIsIdempotent(t *testing.T) {
	want := map[string]struct {
		writes []string
		events int
	}{
		contract.RefreshBackup.Name: {[]string{"patch status NonAdminBackup"}, 1},
		contract.RefreshBackup.Name + ", to announce a deletion": {
			[]string{"delete NonAdminBackup", "patch status NonAdminBackup"}, 1,
		},
		contract.RefreshBackup.Name + ", to release the object": {[]string{"patch NonAdminBackup"}, 1},
		contract.StartBackup.Name: {
			[]string{"patch NonAdminBackup", "create Backup", "patch status NonAdminBackup"}, 1,
		},
		contract.AdmitBackup.Name:         {[]string{"patch status NonAdminBackup", "patch NonAdminBackup"}, 0},
		contract.MarkBackupDeleting.Name:  {[]string{"delete NonAdminBackup", "patch status NonAdminBackup"}, 1},
		contract.RequestDeletion.Name:     {[]string{"create DeleteBackupRequest", "patch status NonAdminBackup"}, 1},
		contract.WithdrawBackup.Name:      {[]string{"delete Backup"}, 0},
		contract.DeleteVeleroObjects.Name: {[]string{"create ConfigMap", "delete Backup"}, 0},
		contract.ReleaseBackup.Name:       {[]string{"patch NonAdminBackup"}, 1},
	}
	for title, w := range due(t) {
		t.Run(title, func(t *testing.T) {
			activity := activityOf(title)
			var first, second contract.BackupView
			assert.Equal(t, want[title].writes, activitytest.WritesOf(w, func() { first = activitytest.Do(t, w, activity) }))
			assert.Len(t, activitytest.Events(w), want[title].events)
			assert.Empty(t, activitytest.WritesOf(w, func() { second = activitytest.Do(t, w, activity) }), "the second run")
			assert.Empty(t, activitytest.Events(w), "the second run")
			assert.Equal(t, first, second)
		})
	}
}

// All activities of a run may run again after a kill, in their order: the sequence is idempotent as a sequence.
func TestASequenceOfActivitiesIsIdempotent(t *testing.T) {
	w := fake.New(t, fake.NAB(activitytest.Name))
	sequence := []string{contract.RefreshBackup.Name, contract.StartBackup.Name}
	first := activitytest.Do(t, w, sequence...)
	assert.Empty(t, activitytest.WritesOf(w, func() { assert.Equal(t, first, activitytest.Do(t, w, sequence...)) }))

	w.EditSpec(activitytest.Name, activitytest.DeleteBackup)
	sequence = []string{contract.RefreshBackup.Name, contract.MarkBackupDeleting.Name, contract.RequestDeletion.Name}
	first = activitytest.Do(t, w, sequence...)
	assert.Empty(t, activitytest.WritesOf(w, func() { assert.Equal(t, first, activitytest.Do(t, w, sequence...)) }))
	assert.Len(t, w.Requests(), 1)
}

// A step for an object that is gone, or that was recreated under its name, does nothing.
func TestAnObjectOfAnotherUIDIsNotFound(t *testing.T) {
	for title, w := range due(t) {
		t.Run(title, func(t *testing.T) {
			activity := activityOf(title)
			late := contract.BackupStep{Ref: fake.Ref(activitytest.Name), Attempt: 1}
			late.Ref.UID = "uid-of-the-one-before"
			missing := contract.BackupStep{Ref: fake.Ref("missing"), Attempt: 1}
			for _, step := range []contract.BackupStep{late, missing} {
				assert.Empty(t, activitytest.WritesOf(w, func() {
					view, err := activitytest.Run(t, w, activity, step)
					require.NoError(t, err)
					assert.Equal(t, contract.BackupView{}, view)
				}))
			}
			assert.Empty(t, activitytest.Events(w))
		})
	}
}

// While another controller serves the same kinds nothing is written, and nothing even read.
func TestNothingIsDoneWhilePaused(t *testing.T) {
	for title, w := range due(t) {
		t.Run(title, func(t *testing.T) {
			activity := activityOf(title)
			w.Backups.Paused = func() error { return errors.New("the OADP non-admin controller serves these resources") }
			w.FailReads(func(runtime.Object) error {
				t.Error("read")
				return nil
			})
			assert.Empty(t, activitytest.WritesOf(w, func() {
				_, err := activitytest.Run(t, w, activity, contract.BackupStep{Ref: fake.Ref(activitytest.Name), Attempt: 1})
				activitytest.RequireError(t, err, contract.ErrorPaused, true)
				assert.ErrorContains(t, err, "non-admin controller")
			}))
		})
	}
}

func isNAB(object kubeclient.Object) bool {
	_, is := object.(*oadpv1alpha1.NonAdminBackup)
	return is
}

func writesVeleroAlone(activity string) bool {
	return activity == contract.DeleteVeleroObjects.Name || activity == contract.WithdrawBackup.Name
}

// Another writer changes the object between reading and writing, several times: the patch is refused, and the activity
// reads again, decides again and patches again. Nothing of the other writer's is lost.
func TestAConflictIsReadAndDecidedAgain(t *testing.T) {
	for title, w := range due(t) {
		t.Run(title, func(t *testing.T) {
			activity := activityOf(title)
			if writesVeleroAlone(activity) {
				t.Skip("it writes no NonAdminBackup")
			}
			conflicts := 0
			w.Fail(func(_ string, object kubeclient.Object) error {
				if !isNAB(object) || conflicts == 4 {
					return nil
				}
				conflicts++
				nab := w.Read(activitytest.Name)
				nab.Annotations = map[string]string{"others": string(rune('0' + conflicts))}
				return w.Client.Update(t.Context(), nab)
			})
			view := activitytest.Do(t, w, activity)
			assert.Equal(t, 4, conflicts)
			w.Fail(nil)
			assert.Empty(t, activitytest.WritesOf(w, func() { assert.Equal(t, view, activitytest.Do(t, w, activity)) }), "all that was due is done")
			assert.LessOrEqual(t, len(activitytest.Events(w)), 1, "told once")
			if nab := w.Read(activitytest.Name); nab != nil {
				assert.Equal(t, "4", nab.Annotations["others"])
			}
		})
	}
}

// The decision is recreated too, not only the patch: what was right for the object read first may be wrong by now.
func TestAConflictMayChangeTheDecision(t *testing.T) {
	t.Run("the spec became invalid", func(t *testing.T) {
		w := fake.New(t, fake.NAB(activitytest.Name))
		w.Fail(func(string, kubeclient.Object) error {
			w.Fail(nil)
			w.EditSpec(activitytest.Name, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.BackupSpec.ExcludedNamespaces = []string{"x"} })
			return nil
		})
		activitytest.Do(t, w, contract.StartBackup.Name)
		assert.Equal(t, "InvalidBackupSpec", accepted(w.Read(activitytest.Name)).Reason)
		assert.EqualValues(t, 2, accepted(w.Read(activitytest.Name)).ObservedGeneration)
		assert.Empty(t, w.Read(activitytest.Name).Finalizers)
	})
	t.Run("Velero went on", func(t *testing.T) {
		w := activitytest.Created(t, "InProgress")
		w.SetVelero(activitytest.Ours, velerov1.BackupPhaseFinalizing)
		w.Fail(func(string, kubeclient.Object) error {
			w.Fail(nil)
			w.SetVelero(activitytest.Ours, velerov1.BackupPhaseCompleted)
			nab := w.Read(activitytest.Name)
			nab.Annotations = map[string]string{"others": "1"}
			return w.Client.Update(t.Context(), nab)
		})
		activitytest.Do(t, w, contract.RefreshBackup.Name)
		assert.Equal(t, velerov1.BackupPhaseCompleted, w.Read(activitytest.Name).Status.VeleroBackup.Status.Phase)
	})
	t.Run("the deletion was taken back", func(t *testing.T) {
		w := activitytest.Created(t, "Completed")
		w.EditSpec(activitytest.Name, activitytest.DeleteBackup)
		w.Fail(func(verb string, _ kubeclient.Object) error {
			if verb == "delete" {
				w.Fail(nil)
				w.EditSpec(activitytest.Name, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.DeleteBackup = false })
			}
			return nil
		})
		view := activitytest.Do(t, w, contract.MarkBackupDeleting.Name)
		assert.False(t, view.BeingDeleted, "the object that was deleted is not the one that was read")
	})
}

// An object that is never left alone costs one activity about a second, less than a local attempt has; then it is retried
// as any failure.
func TestConflictsWithoutEndAreARetryableError(t *testing.T) {
	w := activitytest.Created(t, "InProgress")
	w.SetVelero(activitytest.Ours, velerov1.BackupPhaseCompleted)
	w.Fail(func(string, kubeclient.Object) error {
		nab := w.Read(activitytest.Name)
		nab.Labels = map[string]string{"others": nab.ResourceVersion}
		return w.Client.Update(context.Background(), nab)
	})
	step := contract.BackupStep{Ref: fake.Ref(activitytest.Name)}
	_, err := activitytest.Run(t, w, contract.RefreshBackup.Name, step)
	activitytest.RequireError(t, err, contract.ErrorKubernetes, true)

	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		_, err := activitytest.Run(t, w, contract.RefreshBackup.Name, step)
		activitytest.RequireError(t, err, contract.ErrorKubernetes, true)
		assert.InDelta(t, 0.8, time.Since(started).Seconds(), 0.2)
	})
}

// Errors of the API server on the object itself, for every activity.
func TestErrorsOfThePatchHaveTheirType(t *testing.T) {
	tests := map[string]struct {
		err           error
		wantType      string
		wantRetryable bool
	}{
		"forbidden":      {activitytest.ErrForbidden, contract.ErrorAccessDenied, true},
		"unauthorized":   {activitytest.ErrUnauthorized, contract.ErrorAccessDenied, true},
		"invalid":        {errInvalid, contract.ErrorInvalidObject, false},
		"too large":      {activitytest.ErrTooLarge, contract.ErrorInvalidObject, false},
		"no answer":      {fake.ErrAway, contract.ErrorKubernetes, true},
		"a late attempt": {context.DeadlineExceeded, contract.ErrorKubernetes, true},
	}
	for title, test := range tests {
		for of, w := range due(t) {
			t.Run(title+", "+of, func(t *testing.T) {
				activity := activityOf(of)
				fails := isNAB
				if writesVeleroAlone(activity) {
					fails = func(object kubeclient.Object) bool { return !isNAB(object) }
				}
				w.Fail(func(_ string, object kubeclient.Object) error {
					if fails(object) {
						return test.err
					}
					return nil
				})
				_, err := activitytest.Run(t, w, activity, contract.BackupStep{Ref: fake.Ref(activitytest.Name), Attempt: 1})
				activitytest.RequireError(t, err, test.wantType, test.wantRetryable)
				assert.Empty(t, activitytest.Events(w), "nothing is told that did not happen")
			})
		}
	}
}

func TestErrorsOfReadingHaveTheirType(t *testing.T) {
	for title, test := range map[string]struct {
		err  error
		want string
	}{
		"forbidden":    {activitytest.ErrForbidden, contract.ErrorAccessDenied},
		"unauthorized": {activitytest.ErrUnauthorized, contract.ErrorAccessDenied},
		"no answer":    {fake.ErrAway, contract.ErrorKubernetes},
	} {
		t.Run(title, func(t *testing.T) {
			w := activitytest.Created(t, "Completed")
			w.FailReads(func(runtime.Object) error { return test.err })
			for _, activity := range all {
				_, err := activitytest.Run(t, w, activity, contract.BackupStep{Ref: fake.Ref(activitytest.Name), Attempt: 1})
				activitytest.RequireError(t, err, test.want, true)
			}
		})
	}
}

// The object may vanish between reading and writing: that is its end, not an error.
func TestAnObjectThatVanishesIsNotFound(t *testing.T) {
	for title, w := range due(t) {
		t.Run(title, func(t *testing.T) {
			activity := activityOf(title)
			if writesVeleroAlone(activity) {
				t.Skip("it writes no NonAdminBackup")
			}
			w.Fail(func(_ string, object kubeclient.Object) error {
				if isNAB(object) {
					return activitytest.ErrNotFound
				}
				return nil
			})
			assert.Equal(t, contract.BackupView{}, activitytest.Do(t, w, activity))
			assert.Empty(t, activitytest.Events(w))
		})
	}
}

func TestEveryActivityIsRegistered(t *testing.T) {
	w := activitytest.Created(t, "Completed")
	for _, activity := range all {
		view := activitytest.Do(t, w, activity)
		assert.True(t, backup.Settled(view), "%s has nothing to do for a settled object", activity)
	}
	assert.Empty(t, activitytest.Events(w))
}
