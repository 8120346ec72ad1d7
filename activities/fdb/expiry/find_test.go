package expiry_test

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/fdb/expiry"
	"holdfast.dev/holdfast/activities/fdb/gather"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// add creates another FoundationDBBackup.
func (w *expiryWorld) add(t *testing.T, namespace, name string, changes ...func(*fdbv1alpha1.FoundationDBBackup)) {
	t.Helper()
	object := &fdbv1alpha1.FoundationDBBackup{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("u-" + name), CreationTimestamp: metav1.NewTime(time.Unix(expiryTurn, 0)),
	}}
	for _, change := range changes {
		change(object)
	}
	status := object.Status.DeepCopy()
	require.NoError(t, w.Create(t.Context(), object))
	object.Status = *status
	require.NoError(t, w.Status().Update(t.Context(), object))
}

// writesTo sets containers in the status.
func writesTo(urls ...string) func(*fdbv1alpha1.FoundationDBBackup) {
	return func(o *fdbv1alpha1.FoundationDBBackup) {
		for _, url := range urls {
			o.Status.Backups = append(o.Status.Backups, fdbv1alpha1.BackupDetails{Tag: "default", URL: url})
		}
	}
}

func TestContainersThatOtherBackupsHave(t *testing.T) {
	w := newExpiryWorld(t)
	w.add(t, "shop", "copy", writesTo(storeURL("elsewhere"), "blobstore://shop@S3.local:443/old?bucket=fdb&secure_connection=1"))
	w.add(t, "team", "twin", writesTo(storeURL("old"), storeURL("new"), storeURL("new")))
	w.add(t, "team", "stranger", writesTo(
		"blobstore://lab@s3.local/old?bucket=other", "blobstore://lab@s3.local/older?bucket=fdb", "file:///old"))
	w.add(t, "team", "going", writesTo(storeURL("old")), func(o *fdbv1alpha1.FoundationDBBackup) {
		o.Finalizers = []string{fdbv1alpha1.FinalizerDelete}
	})
	w.add(t, "envy", "planner", writesTo(storeURL("old"), storeURL("new")), func(o *fdbv1alpha1.FoundationDBBackup) {
		for i := range o.Status.Backups {
			o.Status.Backups[i].State = fdb.StateNeverRan // naming a place does not mean to have data there
		}
	})
	require.NoError(t, w.Delete(t.Context(), &fdbv1alpha1.FoundationDBBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "going"},
	}))
	sharing := func(job contract.FDBJob) map[string][]string {
		names := map[string][]string{}
		for container, refs := range w.plan(t, fake.FDBRef, job).Sharing {
			for _, ref := range refs {
				names[container] = append(names[container], ref.String())
			}
		}
		return names
	}
	older := map[string][]string{storePlace("old").Container: {"shop/copy", "team/twin"}}
	assert.Equal(t, older, sharing(contract.FDBJobExpire), "only what would be deleted")
	w.goes(t, fdbv1alpha1.FinalizerDelete)
	older[storePlace("new").Container] = []string{"team/twin"}
	assert.Equal(t, older, sharing(contract.FDBJobDelete))
}

func (w *expiryWorld) find(t *testing.T) contract.FDBExpiriesFound {
	t.Helper()
	found, err := try[contract.FDBExpiriesFound](t, w, contract.FindFDBExpiries.Name, contract.FDBExpiryQueueInput{Cluster: "west"})
	require.NoError(t, err)
	return found
}

func TestWhatObjectsWantOfTheQueue(t *testing.T) {
	policy := func(o *fdbv1alpha1.FoundationDBBackup) { o.Spec.Expiry.MaxRetention = "720h" }
	created := func(after int64) func(*fdbv1alpha1.FoundationDBBackup) {
		return func(o *fdbv1alpha1.FoundationDBBackup) {
			o.CreationTimestamp = metav1.NewTime(time.Unix(expiryTurn+after, 0))
		}
	}
	last := func(o *fdbv1alpha1.FoundationDBBackup) {
		o.Status.Expiry = &fdbv1alpha1.BackupExpiryStatus{Turn: expiryTurn - 5}
	}
	w := newExpiryWorld(t, created(3))
	w.add(t, "a", "third", policy, created(3), last)
	w.add(t, "team", "first", policy, created(1))
	w.add(t, "z", "second", policy, created(2))
	w.add(t, "team", "keeps-all", created(0))
	entry := func(namespace, name, uid string, job contract.FDBJob, last int64) contract.FDBQueueEntry {
		return contract.FDBQueueEntry{Ref: contract.ObjectRef{Namespace: namespace, Name: name, UID: uid}, Job: job, Last: last}
	}
	want := []contract.FDBQueueEntry{
		entry("team", "first", "u-first", contract.FDBJobExpire, 0), entry("z", "second", "u-second", contract.FDBJobExpire, 0),
		entry("a", "third", "u-third", contract.FDBJobExpire, expiryTurn-5), entry("team", "lab", "u", contract.FDBJobExpire, 0),
	}
	assert.Equal(t, contract.FDBExpiriesFound{Entries: want}, w.find(t))

	w.goes(t, fdbv1alpha1.FinalizerStop, fdbv1alpha1.FinalizerDelete)
	assert.Equal(t, want[:3], w.find(t).Entries, "it is not stopped yet")
	w.change(t, func(o *fdbv1alpha1.FoundationDBBackup) { o.Finalizers = []string{fdbv1alpha1.FinalizerDelete} })
	want[3].Job = contract.FDBJobDelete
	assert.Equal(t, want, w.find(t).Entries)
	w.change(t, func(o *fdbv1alpha1.FoundationDBBackup) { o.Finalizers = []string{"somebody.else/s"} })
	assert.Equal(t, want[:3], w.find(t).Entries, "its data stay")
}

func TestTheTurnsOfWhichPodsAreLeft(t *testing.T) {
	old, newer, other := deletesAt(expiryTurn-60), deletesAt(expiryTurn), deletesAt(expiryTurn-10)
	newer.Expire, newer.Delete = &contract.FDBExpire{FDBPlace: storePlace("new"), Before: 1, RestorableAfter: 1}, nil
	other.Ref = contract.ObjectRef{Namespace: "team", Name: "other", UID: "u-other"}
	tests := map[string]struct{ first, then contract.FDBPodStep }{
		"the older pod goes first": {old, newer},
		"the newer pod goes first": {newer, old},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newExpiryWorld(t)
			w.add(t, "team", "other", func(o *fdbv1alpha1.FoundationDBBackup) {
				o.Spec.ClusterName, o.Spec.Credentials.SecretName = "lab", "accounts"
				expiryBackup(o)
			})
			for _, step := range []contract.FDBPodStep{old, newer, other} {
				w.pod(t, contract.ApplyFDBPod.Name, step)
				pod := w.made(t, step)
				pod.Finalizers = []string{"test/runs"}
				require.NoError(t, w.Update(t.Context(), pod))
			}
			w.stranger(t, deletesAt(expiryTurn+1))
			turns := []contract.FDBTurn{
				{Ref: other.Ref, Job: contract.FDBJobExpire, Turn: expiryTurn - 10}, {Ref: fake.FDBRef, Job: contract.FDBJobExpire, Turn: expiryTurn},
			}
			assert.Equal(t, turns, w.find(t).Turns, "the newest of each object")
			w.pod(t, contract.DeleteFDBPod.Name, test.first)
			assert.Equal(t, turns, w.find(t).Turns, "the other one has not ended")
			w.pod(t, contract.DeleteFDBPod.Name, test.then)
			turns[1].Closing = true
			assert.Equal(t, turns, w.find(t).Turns, "all of its pods go")
		})
	}
}

func TestForgedPodsAreNoTurns(t *testing.T) {
	tests := map[string]struct {
		forge func(*corev1.Pod)
		is    bool
	}{
		"as it was made":        {func(*corev1.Pod) {}, true},
		"of a clock that is on": {func(p *corev1.Pod) { p.Labels[fdbv1alpha1.LabelTurn] = strconv.FormatInt(expiryTurn+300, 10) }, true},
		"of the future":         {func(p *corev1.Pod) { p.Labels[fdbv1alpha1.LabelTurn] = strconv.FormatInt(expiryTurn+400, 10) }, false},
		"of another label":      {func(p *corev1.Pod) { p.Labels[fdbv1alpha1.LabelExpiry] = "other" }, false},
		"of another job":        {func(p *corev1.Pod) { p.Labels[fdbv1alpha1.LabelJob] = "burn" }, false},
		"of an object that does not exist": {func(p *corev1.Pod) {
			p.OwnerReferences[0].Name, p.Labels[fdbv1alpha1.LabelExpiry] = "x", "x"
		}, false},
		"of an object that had the name": {func(p *corev1.Pod) { p.OwnerReferences[0].UID = "another" }, false},
		"of a UID that is too long":      {func(p *corev1.Pod) { p.OwnerReferences[0].UID = types.UID(strings.Repeat("u", 65)) }, false},
		"of another group's kind":        {func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "other.example/v1alpha1" }, false},
		"of a version to come":           {func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "fdb.holdfast.dev/v2" }, true},
		"of no owner":                    {func(p *corev1.Pod) { p.OwnerReferences = nil }, false},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newExpiryWorld(t)
			w.pod(t, contract.ApplyFDBPod.Name, deletesAt(expiryTurn))
			pod := w.made(t, deletesAt(expiryTurn))
			test.forge(pod)
			require.NoError(t, w.Update(t.Context(), pod))
			assert.Equal(t, test.is, len(w.find(t).Turns) > 0)
		})
	}
}

// A cluster's objects do not fit into one answer.
func TestAllPagesAreRead(t *testing.T) {
	w := newExpiryWorld(t)
	w.pod(t, contract.ApplyFDBPod.Name, deletesAt(expiryTurn))
	paged := interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			requested := (&client.ListOptions{}).ApplyOptions(options)
			assert.Positive(t, requested.Limit)
			if requested.Continue == "" { // the first page is empty, as it may be
				list.SetContinue("next")
				return nil
			}
			assert.Equal(t, "next", requested.Continue)
			return c.List(ctx, list, options...)
		},
	})
	w.expiries = &expiry.Activities{Client: paged, Gatherer: &gather.Gatherer{Reader: paged}, Now: expiryNow}
	found := w.find(t)
	assert.Len(t, found.Entries, 1)
	assert.Len(t, found.Turns, 1)
	later := contract.FDBExpiryStep{Ref: fake.FDBRef, Job: contract.FDBJobExpire, Turn: expiryTurn + 1}
	plan, err := try[contract.FDBExpiryPlan](t, w, contract.PlanFDBExpiry.Name, later)
	require.NoError(t, err)
	assert.Len(t, plan.Pods, 1)
}

func TestWhatCannotBeListedIsAnError(t *testing.T) {
	w := newExpiryWorld(t)
	for kind, says := range map[client.ObjectList]string{
		&corev1.PodList{}:                     "list pods that expire: away",
		&fdbv1alpha1.FoundationDBBackupList{}: "list FoundationDBBackups: away",
	} {
		failing := interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if reflect.TypeOf(list) == reflect.TypeOf(kind) {
					return errors.New("away")
				}
				return c.List(ctx, list, options...)
			},
		})
		w.expiries = &expiry.Activities{Client: failing, Gatherer: &gather.Gatherer{Reader: failing}, Now: expiryNow}
		_, err := try[contract.FDBExpiriesFound](t, w, contract.FindFDBExpiries.Name, contract.FDBExpiryQueueInput{})
		require.ErrorContains(t, err, says)
		step := contract.FDBExpiryStep{Ref: fake.FDBRef, Job: contract.FDBJobExpire, Turn: expiryTurn}
		_, err = try[contract.FDBExpiryPlan](t, w, contract.PlanFDBExpiry.Name, step)
		require.ErrorContains(t, err, says, "nobody may delete what others may have")
	}
}
