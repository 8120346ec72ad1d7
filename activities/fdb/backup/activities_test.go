package backup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/fdb/agents"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/k8s/kstatus"
	"holdfast.dev/holdfast/workflows/contract"
)

var fdbStep = contract.ObjectStep{Ref: fake.FDBRef}

// must runs an activity that succeeds.
func must(t *testing.T, w *fake.FDBWorld, name string, in any) contract.FDBBackupView {
	t.Helper()
	view, err := activitytest.Performed[contract.FDBBackupView](t, w.Backups, name, in)
	require.NoError(t, err)
	return view
}

func TestTheFinalizerOfAFoundationDBBackupIsAddedOnce(t *testing.T) {
	w := fake.NewFDBWorld()
	view := must(t, w, contract.ObserveFDBBackup.Name, fdbStep)
	require.True(t, view.Held)
	require.True(t, view.DeleteWanted)
	require.Equal(t, []string{fdbv1alpha1.FinalizerStop, fdbv1alpha1.FinalizerDelete}, w.Object(t).Finalizers)
	require.Equal(t, []string{"patch backup"}, w.Wrote())
	require.Equal(t, view, must(t, w, contract.ObserveFDBBackup.Name, fdbStep))
	require.Empty(t, w.Wrote())
	other := fdbStep
	other.Ref.UID = "another"
	require.Zero(t, must(t, w, contract.ObserveFDBBackup.Name, other), "another object has the name now")
	require.NoError(t, w.Delete(t.Context(), w.Object(t)))
	w.Wrote()
	require.True(t, must(t, w, contract.ObserveFDBBackup.Name, fdbStep).BeingDeleted)
	require.Empty(t, w.Wrote())
}

func TestAPlanIsWrittenOnce(t *testing.T) {
	w := fake.NewFDBWorld()
	plan := contract.FDBPlan{Ref: fake.FDBRef, Generation: 1, At: time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC).Unix()}
	stale := plan
	stale.Generation = 2
	require.Empty(t, must(t, w, contract.PlanFDBBackup.Name, stale).Backups, "decided upon another spec")
	require.Empty(t, w.Wrote())
	view := must(t, w, contract.PlanFDBBackup.Name, plan)
	require.Equal(t, []string{"status backup"}, w.Wrote())
	plan.At += 60
	require.Equal(t, view.Backups, must(t, w, contract.PlanFDBBackup.Name, plan).Backups, "a repeated start goes to the same place")
	require.Empty(t, w.Wrote())
	require.Equal(t, []fdbv1alpha1.BackupDetails{{
		Tag: "default", URL: "blobstore://lab@s3.local/lab-2026-08-01T10-00-00Z?bucket=fdb-backups", State: fdb.StateNeverRan,
	}}, w.Object(t).Status.Backups)
}

// What the status in a backup lists was written for the object that was there then.
func TestARestoredFoundationDBBackupHasNoDataYet(t *testing.T) {
	w := fake.NewFDBWorld()
	plan := contract.FDBPlan{Ref: fake.FDBRef, Generation: 1, At: 1785000000}
	must(t, w, contract.PlanFDBBackup.Name, plan)
	require.EqualValues(t, "u", w.Object(t).Status.UID)

	restored := w.Object(t)
	restored.Status.UID, restored.Status.ObservedGeneration = "old", 1
	require.NoError(t, w.Status().Update(t.Context(), restored))
	w.Wrote()
	view := must(t, w, contract.ObserveFDBBackup.Name, fdbStep)
	require.Empty(t, view.Backups)
	require.False(t, view.Observed)
	require.Equal(t, []string{"status backup", "patch backup"}, w.Wrote())
	begun := w.Object(t).Status
	require.Equal(t, []string{kstatus.ConditionReconciling}, []string{begun.Conditions[0].Type})
	begun.Conditions = nil
	require.Equal(t, fdbv1alpha1.FoundationDBBackupStatus{UID: "u"}, begun)
	must(t, w, contract.ObserveFDBBackup.Name, fdbStep)
	require.Empty(t, w.Wrote(), "once")
}

func TestFindingsArePublished(t *testing.T) {
	w := fake.NewFDBWorld()
	findings := contract.FDBFindings{Ref: fake.FDBRef, Generation: 1, Conditions: []contract.FDBCondition{{
		Type: fdbv1alpha1.ConditionIncorrectBackupState, Reason: fdbv1alpha1.ReasonTagTaken, Message: "m",
	}}}
	conflicts := 0
	w.Before = func(write string) { // somebody labels the object meanwhile, once
		if write == "status backup" && conflicts == 0 {
			conflicts++
			object := w.Object(t)
			object.Labels = map[string]string{"seen": "yes"}
			require.NoError(t, w.Update(t.Context(), object))
		}
	}
	require.False(t, must(t, w, contract.PublishFDBBackup.Name, findings).Reconciled)
	require.Equal(t, 1, conflicts)
	require.Equal(t, "yes", w.Object(t).Labels["seen"])
	require.Equal(t, fdbv1alpha1.ReasonTagTaken, w.Object(t).Status.Conditions[0].Reason)
	events := w.Events()
	require.Len(t, events, 1)
	require.Contains(t, events[0], "Warning TagTaken IncorrectBackupState: m")
	w.Wrote()
	version := w.Object(t).ResourceVersion
	must(t, w, contract.PublishFDBBackup.Name, findings)
	require.Empty(t, w.Wrote(), "nothing has changed")
	require.Empty(t, w.Events())
	require.Equal(t, version, w.Object(t).ResourceVersion)

	other := findings
	other.Ref.UID, other.Conditions = "another", nil
	require.Zero(t, must(t, w, contract.PublishFDBBackup.Name, other))
	require.Empty(t, w.Wrote(), "the status of another object of the name")
	findings.Conditions = nil
	require.True(t, must(t, w, contract.PublishFDBBackup.Name, findings).Reconciled)
	require.Len(t, w.Events(), 1)
}

func TestTheAgentsAreMadeAndMended(t *testing.T) {
	drift := func(change func(*appsv1.Deployment)) func(*testing.T, *fake.FDBWorld) {
		return func(t *testing.T, w *fake.FDBWorld) {
			must(t, w, contract.ApplyFDBAgents.Name, fdbStep)
			deployment := w.Deployment(t)
			change(deployment)
			require.NoError(t, w.Update(t.Context(), deployment))
		}
	}
	tests := map[string]struct {
		prepare func(*testing.T, *fake.FDBWorld)
		want    []string
		current bool
		says    string
	}{
		"missing":          {want: []string{"create deployment"}, current: true},
		"as they shall be": {prepare: drift(func(*appsv1.Deployment) {}), current: true},
		"another image": {
			prepare: drift(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil" }),
			want:    []string{"patch deployment"}, current: true,
		},
		"another number": {
			prepare: drift(func(d *appsv1.Deployment) { none := int32(0); d.Spec.Replicas = &none }),
			want:    []string{"patch deployment"}, current: true,
		},
		"a selector that cannot be patched": {
			prepare: drift(func(d *appsv1.Deployment) { d.Spec.Selector.MatchLabels = map[string]string{"app": "x"} }),
			says:    "delete the Deployment",
		},
		"somebody else's of the name": {prepare: func(t *testing.T, w *fake.FDBWorld) {
			require.NoError(t, w.Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lab"}}))
		}},
		"a backup that is being deleted": {prepare: func(t *testing.T, w *fake.FDBWorld) {
			must(t, w, contract.ObserveFDBBackup.Name, fdbStep)
			require.NoError(t, w.Delete(t.Context(), w.Object(t)))
		}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := fake.NewFDBWorld()
			if test.prepare != nil {
				test.prepare(t, w)
			}
			w.Wrote()
			view := must(t, w, contract.ApplyFDBAgents.Name, fdbStep)
			assert.Equal(t, test.want, w.Wrote())
			assert.Equal(t, test.current, view.Agents.Current)
			assert.Contains(t, view.Agents.Invalid, test.says)
			if test.current {
				wanted, err := agents.Deployment(w.Object(t), "7.3.48")
				require.NoError(t, err)
				assert.Equal(t, wanted.Spec.Template.Spec.Containers[0].Image, w.Deployment(t).Spec.Template.Spec.Containers[0].Image)
				assert.True(t, view.Agents.Ours)
			}
		})
	}
}

func TestAgentsThatSomebodyMadeMeanwhileStay(t *testing.T) {
	w := fake.NewFDBWorld()
	w.Before = func(write string) {
		if write == "create deployment" {
			w.Before = func(string) {}
			require.NoError(t, w.Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lab"}}))
		}
	}
	view := must(t, w, contract.ApplyFDBAgents.Name, fdbStep)
	require.True(t, view.Agents.Exists)
	require.False(t, view.Agents.Ours)
}

func TestAFoundationDBBackupIsLetGo(t *testing.T) {
	for abandoned, event := range map[string]string{"": "Normal Stopped", "the cluster is gone": "Warning Abandoned the cluster is gone"} {
		t.Run(event, func(t *testing.T) {
			w := fake.NewFDBWorld()
			w.SetDeletionFinalizer(t, false)
			must(t, w, contract.ObserveFDBBackup.Name, fdbStep)
			release := contract.FDBRelease{Ref: fake.FDBRef, Abandoned: abandoned}
			require.True(t, must(t, w, contract.ReleaseFDBBackup.Name, release).Held, "nobody has deleted it")
			require.NoError(t, w.Delete(t.Context(), w.Object(t)))
			must(t, w, contract.ReleaseFDBBackup.Name, release)
			err := w.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "lab"}, &fdbv1alpha1.FoundationDBBackup{})
			require.True(t, apierrors.IsNotFound(err), "%v", err)
			events := w.Events()
			require.Len(t, events, 1)
			require.Contains(t, events[0], event)
			require.False(t, must(t, w, contract.ReleaseFDBBackup.Name, release).Found, "again")
			require.Empty(t, w.Events())
		})
	}
}
