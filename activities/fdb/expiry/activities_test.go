package expiry_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/fdb/jobs"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/k8s/metrics/metricstest"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestWhatATurnHasToDo(t *testing.T) {
	const day = 24 * 60 * 60
	other := fake.FDBRef
	other.UID = "another"
	tests := map[string]struct {
		ref     contract.ObjectRef
		job     contract.FDBJob
		prepare func(*testing.T, *expiryWorld)
		want    contract.FDBExpiryPlan
		says    string
	}{
		"another object has the name now": {
			ref: other, job: contract.FDBJobExpire, want: contract.FDBExpiryPlan{Outcome: contract.FDBTurnGone}, says: "is gone",
		},
		"the policy": {ref: fake.FDBRef, job: contract.FDBJobExpire, want: contract.FDBExpiryPlan{
			Owner: "team/lab", Delete: []contract.FDBPlace{storePlace("old")}, Expire: &contract.FDBExpire{
				FDBPlace: storePlace("new"), Before: expiryTurn - 30*day, RestorableAfter: expiryTurn - 7*day,
			},
		}},
		"without a policy": {
			ref: fake.FDBRef, job: contract.FDBJobExpire, prepare: func(t *testing.T, w *expiryWorld) {
				w.change(t, func(o *fdbv1alpha1.FoundationDBBackup) { o.Spec.Expiry = fdbv1alpha1.BackupExpiry{} })
			},
			want: contract.FDBExpiryPlan{Owner: "team/lab", Outcome: contract.FDBTurnNothing}, says: "maxRetention is not set",
		},
		"a cluster that is gone": {
			ref: fake.FDBRef, job: contract.FDBJobExpire, prepare: func(t *testing.T, w *expiryWorld) {
				cluster := &foundationdbv1beta2.FoundationDBCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lab"}}
				require.NoError(t, w.Delete(t.Context(), cluster))
			},
			want: contract.FDBExpiryPlan{Owner: "team/lab", Outcome: contract.FDBTurnNotYet}, says: "only the database knows",
		},
		"a deletion that nobody requested": {
			ref: fake.FDBRef, job: contract.FDBJobDelete, says: "is not being deleted",
			want: contract.FDBExpiryPlan{Owner: "team/lab", Outcome: contract.FDBTurnNothing},
		},
		"a deletion of what is not stopped yet": {
			ref: fake.FDBRef, job: contract.FDBJobDelete, prepare: func(t *testing.T, w *expiryWorld) {
				w.goes(t, fdbv1alpha1.FinalizerStop, fdbv1alpha1.FinalizerDelete)
			},
			want: contract.FDBExpiryPlan{Owner: "team/lab", Outcome: contract.FDBTurnNotYet}, says: "not stopped yet",
		},
		"a deletion": {
			ref: fake.FDBRef, job: contract.FDBJobDelete, prepare: func(t *testing.T, w *expiryWorld) { w.goes(t, fdbv1alpha1.FinalizerDelete) },
			want: contract.FDBExpiryPlan{Owner: "team/lab", Delete: []contract.FDBPlace{storePlace("old"), storePlace("new")}},
		},
		"a deletion where others' data have kept a backup from its start": {
			ref: fake.FDBRef, job: contract.FDBJobDelete, prepare: func(t *testing.T, w *expiryWorld) {
				w.change(t, func(o *fdbv1alpha1.FoundationDBBackup) { o.Status.Backups[1].State = fdb.StateNeverRan })
				w.goes(t, fdbv1alpha1.FinalizerDelete)
			},
			want: contract.FDBExpiryPlan{Owner: "team/lab", Delete: []contract.FDBPlace{storePlace("old")}},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newExpiryWorld(t)
			if test.prepare != nil {
				test.prepare(t, w)
			}
			plan := w.plan(t, test.ref, test.job)
			assert.Contains(t, plan.Message, test.says)
			test.want.Message = plan.Message
			assert.Equal(t, test.want, plan)
		})
	}
}

func TestThePodsOfOtherTurnsArePartOfThePlan(t *testing.T) {
	w := newExpiryWorld(t)
	earlier := w.pod(t, contract.ApplyFDBPod.Name, deletesAt(expiryTurn-60))
	w.pod(t, contract.ApplyFDBPod.Name, deletesAt(expiryTurn))
	w.goes(t, fdbv1alpha1.FinalizerDelete)
	pod := w.made(t, deletesAt(expiryTurn-60))
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	require.NoError(t, w.Status().Update(t.Context(), pod))
	earlier.Ended = true // the plan does not say why
	w.stranger(t, deletesAt(expiryTurn-120))
	assert.Equal(t, []contract.FDBPodView{earlier}, w.plan(t, fake.FDBRef, contract.FDBJobDelete).Pods)
	reborn := fake.FDBRef
	reborn.UID = "another"
	assert.Empty(t, w.plan(t, reborn, contract.FDBJobDelete).Pods, "those of an object that had the name")
	long := contract.ObjectRef{Namespace: "team", Name: strings.Repeat("a", 64), UID: "l"}
	assert.Empty(t, w.plan(t, long, contract.FDBJobDelete).Pods, "no label holds the name")
}

func TestAPlanNamesSoManyPods(t *testing.T) {
	w := newExpiryWorld(t)
	for i := range int64(25) {
		w.pod(t, contract.ApplyFDBPod.Name, deletesAt(expiryTurn-60-i))
	}
	assert.Len(t, w.plan(t, fake.FDBRef, contract.FDBJobExpire).Pods, 20)
}

func TestATurnOfTheFutureExpiresWhatIsOldNow(t *testing.T) {
	w := newExpiryWorld(t)
	step := contract.FDBExpiryStep{Ref: fake.FDBRef, Job: contract.FDBJobExpire, Turn: expiryTurn + 90*24*60*60}
	plan, err := try[contract.FDBExpiryPlan](t, w, contract.PlanFDBExpiry.Name, step)
	require.NoError(t, err)
	assert.Equal(t, expiryNow().Add(-720*time.Hour).Unix(), plan.Expire.Before)
	assert.Equal(t, expiryNow().Add(-168*time.Hour).Unix(), plan.Expire.RestorableAfter)
}

// Between the plan and the pod the guards have to answer, which may take minutes.
func TestAPodIsNotMadeForWhatTheObjectDoesNotWantAnyMore(t *testing.T) {
	planned := newExpiryWorld(t).plan(t, fake.FDBRef, contract.FDBJobExpire)
	expires := contract.FDBPodStep{Ref: fake.FDBRef, Turn: expiryTurn, Number: 1, Job: contract.FDBJobExpire, Expire: planned.Expire}
	second := contract.FDBPodStep{Ref: fake.FDBRef, Turn: expiryTurn, Number: 2, Job: contract.FDBJobExpire, Delete: planned.Delete}
	last := contract.FDBPodStep{Ref: fake.FDBRef, Turn: expiryTurn, Number: 1, Job: contract.FDBJobDelete, Delete: planned.Delete}
	policy := func(most, least string) func(*fdbv1alpha1.FoundationDBBackup) {
		return func(o *fdbv1alpha1.FoundationDBBackup) {
			o.Spec.Expiry = fdbv1alpha1.BackupExpiry{MaxRetention: most, MinRestorable: least}
		}
	}
	newer := func(o *fdbv1alpha1.FoundationDBBackup) {
		entry := o.Status.Backups[1]
		entry.URL = storeURL("newest")
		o.Status.Backups = append(o.Status.Backups, entry)
	}
	tests := map[string]struct {
		step   contract.FDBPodStep
		change func(*fdbv1alpha1.FoundationDBBackup)
		made   bool
	}{
		"an expiration as planned":            {expires, nil, true},
		"data are kept longer":                {expires, policy("1000h", "168h"), false},
		"data are kept less long":             {expires, policy("700h", "168h"), true},
		"more shall be restorable":            {expires, policy("720h", "200h"), false},
		"nothing need be restorable":          {expires, policy("720h", ""), true},
		"all data are kept":                   {expires, policy("", ""), false},
		"there is a newer backup":             {expires, newer, false},
		"older containers as planned":         {second, nil, true},
		"an older container is not old":       {second, func(o *fdbv1alpha1.FoundationDBBackup) { o.Status.Backups[0].State = fdb.StateRunning }, false},
		"an older container is known no more": {second, func(o *fdbv1alpha1.FoundationDBBackup) { o.Status.Backups = o.Status.Backups[1:] }, false},
		"a deletion that nobody requested":    {last, nil, false},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newExpiryWorld(t)
			if test.change != nil {
				w.change(t, test.change)
			}
			view := w.pod(t, contract.ApplyFDBPod.Name, test.step)
			assert.Equal(t, test.made, view.Found)
			assert.Equal(t, !test.made, view.Refused)
			if !test.made {
				assert.Contains(t, view.Failed, "the FoundationDBBackup has changed: the next turn decides again")
				return
			}
			w.change(t, policy("", ""))
			assert.Equal(t, view, w.pod(t, contract.ApplyFDBPod.Name, test.step), "an existing pod is used")
		})
	}
}

func TestThePodOfAStepIsMadeOnce(t *testing.T) {
	w := newExpiryWorld(t)
	w.Wrote()
	view := w.pod(t, contract.ApplyFDBPod.Name, deletesAt(expiryTurn))
	assert.True(t, view.Found)
	assert.Equal(t, jobs.NameOf(deletesAt(expiryTurn)), view.Name)
	uid := w.made(t, deletesAt(expiryTurn)).UID
	w.fail["create"] = apierrors.NewAlreadyExists(corev1.Resource("pods"), view.Name)
	assert.Equal(t, view, w.pod(t, contract.ApplyFDBPod.Name, deletesAt(expiryTurn)))
	assert.Equal(t, uid, w.made(t, deletesAt(expiryTurn)).UID)
	assert.Equal(t, []string{"create other"}, w.Wrote())
	assert.True(t, jobs.Ours(w.made(t, deletesAt(expiryTurn)), fake.FDBRef))

	gone := contract.FDBPodView{Name: jobs.NameOf(deletesAt(expiryTurn + 1))}
	assert.Equal(t, gone, w.pod(t, contract.ApplyFDBPod.Name, deletesAt(expiryTurn+1)), "it went before it could be read")
}

func TestPodsThatAreRefused(t *testing.T) {
	other := deletesAt(expiryTurn)
	other.Ref.UID = "another"
	tests := map[string]struct {
		step    contract.FDBPodStep
		prepare func(*testing.T, *expiryWorld)
		says    string
		denied  float64
	}{
		"the object is gone": {step: other, says: "the FoundationDBBackup is gone"},
		"somebody else's pod": {
			step: deletesAt(expiryTurn), says: "delete it",
			prepare: func(t *testing.T, w *expiryWorld) { w.stranger(t, deletesAt(expiryTurn)) },
		},
		"a quota": {
			step: deletesAt(expiryTurn), says: "exceeded quota", denied: 1, prepare: func(_ *testing.T, w *expiryWorld) {
				w.fail["create"] = apierrors.NewForbidden(corev1.Resource("pods"), "x", errors.New("exceeded quota: compute"))
			},
		},
		"a template that the API server rejects": {
			step: deletesAt(expiryTurn), says: "is invalid", prepare: func(_ *testing.T, w *expiryWorld) {
				w.fail["create"] = apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "x", nil)
			},
		},
		"a template that is none": {
			step: deletesAt(expiryTurn), says: "unknown field", prepare: func(t *testing.T, w *expiryWorld) {
				w.change(t, func(o *fdbv1alpha1.FoundationDBBackup) {
					o.Spec.PodTemplateSpec = &runtime.RawExtension{Raw: []byte(`{"x":1}`)}
				})
			},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newExpiryWorld(t)
			if test.prepare != nil {
				test.prepare(t, w)
			}
			var view contract.FDBPodView
			denied := metricstest.Counted(t, `holdfast_access_denied_total{activity_type="`+contract.ApplyFDBPod.Name+`"}`, func() {
				view = w.pod(t, contract.ApplyFDBPod.Name, test.step)
			})
			assert.True(t, view.Refused)
			assert.False(t, view.Found)
			assert.Equal(t, jobs.NameOf(test.step), view.Name)
			assert.Contains(t, view.Failed, test.says)
			assert.InDelta(t, test.denied, denied, 0)
		})
	}
}

func TestWhatThePodsNeedMayBeAway(t *testing.T) {
	w := newExpiryWorld(t)
	w.fail["create"], w.fail["delete"] = apierrors.NewServiceUnavailable("away"), apierrors.NewServiceUnavailable("away")
	_, err := try[contract.FDBPodView](t, w, contract.ApplyFDBPod.Name, deletesAt(expiryTurn))
	require.ErrorContains(t, err, "create pod team/"+jobs.NameOf(deletesAt(expiryTurn))+": away")
	delete(w.fail, "create")
	w.pod(t, contract.ApplyFDBPod.Name, deletesAt(expiryTurn))
	_, err = try[contract.FDBPodView](t, w, contract.DeleteFDBPod.Name, deletesAt(expiryTurn))
	require.ErrorContains(t, err, "delete pod team/"+jobs.NameOf(deletesAt(expiryTurn))+": away")
}

func TestAPodIsObserved(t *testing.T) {
	w, step := newExpiryWorld(t), deletesAt(expiryTurn)
	none := contract.FDBPodView{Name: jobs.NameOf(step)}
	assert.Equal(t, none, w.pod(t, contract.ObserveFDBPod.Name, step))
	assert.Zero(t, w.pod(t, contract.ObserveFDBPod.Name, contract.FDBPodStep{Ref: fake.FDBRef}), "no name is no pod's")
	made := w.pod(t, contract.ApplyFDBPod.Name, step)
	assert.Equal(t, made, w.pod(t, contract.ObserveFDBPod.Name, step))
	byName := contract.FDBPodStep{Ref: fake.FDBRef, Name: made.Name}
	pod := w.made(t, step)
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	require.NoError(t, w.Status().Update(t.Context(), pod))
	view := w.pod(t, contract.ObserveFDBPod.Name, byName)
	assert.True(t, view.Ended)
	assert.Contains(t, view.Failed, "Evicted")
	pod.Status.Reason, pod.Status.ContainerStatuses = "", []corev1.ContainerStatus{{Name: "foundationdb", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Message: "delete 1 0 \nend\n"},
	}}}
	require.NoError(t, w.Status().Update(t.Context(), pod))
	assert.Equal(t, &contract.FDBPodResult{Deleted: []string{storeURL("old")}}, w.pod(t, contract.ObserveFDBPod.Name, step).Result)
	other := step
	other.Ref.UID = "another"
	other.Name, other.Number = made.Name, 0
	assert.Equal(t, none, w.pod(t, contract.ObserveFDBPod.Name, other), "it is not of that object")
}

func TestAPodIsDeletedWithGrace(t *testing.T) {
	w, step := newExpiryWorld(t), deletesAt(expiryTurn)
	none := contract.FDBPodView{Name: jobs.NameOf(step)}
	assert.Equal(t, none, w.pod(t, contract.DeleteFDBPod.Name, step), "there is none")
	w.pod(t, contract.ApplyFDBPod.Name, step)
	pod := w.made(t, step)
	pod.Finalizers = []string{"test/runs"} // as long as its container runs
	pod.UID = "p"
	require.NoError(t, w.Update(t.Context(), pod))
	for range 2 {
		view := w.pod(t, contract.DeleteFDBPod.Name, step)
		assert.True(t, view.Found && view.Terminating)
	}
	require.Len(t, w.deleted, 1, "it is requested once")
	assert.EqualValues(t, 30, *w.deleted[0].GracePeriodSeconds, "whatever has become of the pod's own")
	assert.Equal(t, types.UID("p"), *w.deleted[0].Preconditions.UID)
	pod = w.made(t, step)
	pod.Finalizers = nil
	require.NoError(t, w.Update(t.Context(), pod))
	assert.Equal(t, none, w.pod(t, contract.DeleteFDBPod.Name, step))
}

func TestPodsThatStayWhenOneIsDeleted(t *testing.T) {
	w, step := newExpiryWorld(t), deletesAt(expiryTurn)
	w.stranger(t, step)
	assert.Equal(t, contract.FDBPodView{Name: jobs.NameOf(step)}, w.pod(t, contract.DeleteFDBPod.Name, step))
	assert.Empty(t, w.deleted)
	step.Turn++
	made := w.pod(t, contract.ApplyFDBPod.Name, step)
	for _, err := range []error{
		apierrors.NewNotFound(corev1.Resource("pods"), made.Name),
		apierrors.NewConflict(corev1.Resource("pods"), made.Name, errors.New("the UID is another")),
	} {
		w.fail["delete"] = err
		assert.Equal(t, made, w.pod(t, contract.DeleteFDBPod.Name, step), "the answer is the present state")
	}
}
