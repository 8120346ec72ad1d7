package backup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/workflows/backup"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestTheFinalizerGuardsWhatExists(t *testing.T) {
	tests := map[string]struct {
		steps     []func(*testing.T, *fake.World)
		wantGone  bool
		wantEvent string
	}{
		"not deleted":                     {steps: nil},
		"not deleted, the backup gone":    {steps: []func(*testing.T, *fake.World){backupGoes}},
		"deleted, the backup there":       {steps: []func(*testing.T, *fake.World){removed}},
		"the namespace only":              {steps: []func(*testing.T, *fake.World){namespaceGoes}},
		"deleted, the backup gone":        {[]func(*testing.T, *fake.World){removed, backupGoes}, true, "nothing is left of the backup"},
		"deleted with its namespace":      {[]func(*testing.T, *fake.World){removed, namespaceGoes}, true, "the namespace is being deleted; the Velero Backup and its data stay for the administrator"},
		"deleted by force":                {[]func(*testing.T, *fake.World){forced, backupGoes}, true, "the Velero Backup is deleted; its data stay in the object store"},
		"deleted by force, backup there":  {steps: []func(*testing.T, *fake.World){forced}},
		"with its data, the backup there": {steps: []func(*testing.T, *fake.World){asked}},
		"with its data":                   {[]func(*testing.T, *fake.World){asked, backupGoes}, true, "nothing is left of the backup"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := activitytest.Created(t, "Completed")
			for _, step := range test.steps {
				step(t, w)
			}
			activitytest.Events(w)
			there := w.Velero(activitytest.Ours) != nil
			view := activitytest.Do(t, w, contract.ReleaseBackup.Name)
			assert.Equal(t, test.wantGone, w.Read(activitytest.Name) == nil)
			assert.Equal(t, !test.wantGone, view.Found)
			assert.Equal(t, there, w.Velero(activitytest.Ours) != nil, "Release deletes no backup")
			if !test.wantGone {
				assert.Empty(t, activitytest.Events(w))
				return
			}
			assert.Equal(t, []string{"Normal Released " + test.wantEvent}, activitytest.Events(w))
		})
	}
}

// Requests that Velero left behind go with the object; others' stay.
func TestReleaseLeavesNoRequestOfOursBehind(t *testing.T) {
	_, othersRequest := veleroObjects(activitytest.Victims, "crew")
	w := activitytest.Created(t, "Completed", othersRequest, requestByHand())
	w.EditSpec(activitytest.Name, activitytest.DeleteBackup)
	activitytest.Do(t, w, contract.MarkBackupDeleting.Name, contract.RequestDeletion.Name)
	w.Remove(w.Velero(activitytest.Ours))
	activitytest.Do(t, w, contract.ReleaseBackup.Name)
	assert.Nil(t, w.Read(activitytest.Name))
	var left []string
	for _, request := range w.Requests() {
		left = append(left, request.Name)
	}
	assert.ElementsMatch(t, []string{othersRequest.Name, "by-hand"}, left)
}

// Another's finalizer keeps the object: ours is gone all the same, and the other's stays.
func TestReleaseTakesOffOnlyOurFinalizer(t *testing.T) {
	w := activitytest.Created(t, "Completed")
	nab := w.Read(activitytest.Name)
	nab.Finalizers = append(nab.Finalizers, "others/finalizer")
	require.NoError(t, w.Client.Update(t.Context(), nab))
	asked(t, w)
	w.Remove(w.Velero(activitytest.Ours))
	view := activitytest.Do(t, w, contract.ReleaseBackup.Name)
	assert.True(t, backup.Settled(view), "%+v", view)
	assert.Equal(t, []string{"others/finalizer"}, w.Read(activitytest.Name).Finalizers)
}

// A Velero Backup that has put nothing into the object store is withdrawn; one that Velero has begun never is.
func TestOnlyWhatVeleroHasNotBegunIsWithdrawn(t *testing.T) {
	begun := func(_ *testing.T, w *fake.World) {
		velero := w.Velero(activitytest.Ours)
		velero.Status.StartTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		require.NoError(t, w.Client.Update(t.Context(), velero))
	}
	asks := func(_ *testing.T, w *fake.World) { w.EditSpec(activitytest.Name, activitytest.DeleteBackup) }
	type step = func(*testing.T, *fake.World)
	tests := map[string]struct {
		phase velerov1.BackupPhase
		steps []step
		want  bool
	}{
		"never looked at by Velero":    {"", []step{asks}, true},
		"new":                          {"New", []step{asks}, true},
		"queued":                       {"Queued", []step{asks}, true},
		"refused by Velero":            {"FailedValidation", []step{asks}, true},
		"about to start":               {"ReadyToStart", []step{asks}, false},
		"in progress":                  {"InProgress", []step{asks}, false},
		"completed":                    {"Completed", []step{asks}, false},
		"in a phase that nobody knows": {"Pondering", []step{asks}, false},
		"new, but begun":               {"New", []step{asks, begun}, false},
		"nobody asked":                 {"New", nil, false},
		"a plain delete":               {"New", []step{removed}, false},
		"the namespace goes too":       {"New", []step{asked, namespaceGoes}, false},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := activitytest.Created(t, "")
			velero := w.Velero(activitytest.Ours)
			velero.Status.Phase = test.phase
			require.NoError(t, w.Client.Update(t.Context(), velero))
			for _, step := range test.steps {
				step(t, w)
			}
			view := activitytest.Do(t, w, contract.WithdrawBackup.Name)
			assert.Equal(t, test.want, w.Velero(activitytest.Ours) == nil)
			assert.Equal(t, !test.want, view.Velero.Exists)
			assert.Empty(t, w.Requests())
		})
	}
	t.Run("begun meanwhile", func(t *testing.T) {
		w := activitytest.Created(t, "")
		w.EditSpec(activitytest.Name, activitytest.DeleteBackup)
		w.Fail(func(string, client.Object) error {
			w.Fail(nil)
			w.SetVelero(activitytest.Ours, velerov1.BackupPhaseInProgress)
			return nil
		})
		view := activitytest.Do(t, w, contract.WithdrawBackup.Name)
		assert.True(t, view.Velero.Running)
		assert.NotNil(t, w.Velero(activitytest.Ours))
	})
}
