package fdb

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/fake"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
)

// expiryPod returns a pod of a turn of the tenant's backup.
func expiryPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fake.Namespace, Name: name + "-expire-1", UID: "p", Labels: map[string]string{fdbv1alpha1.LabelExpiry: name},
			Annotations: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "foundationdb", Env: []corev1.EnvVar{{Name: "large"}}}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "foundationdb", Image: "i", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
			}},
		},
	}
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(fdbInTeam(name), fdbv1alpha1.GroupVersion.WithKind(fdbv1alpha1.KindFoundationDBBackup)),
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func TestEventsOfThePodsThatExpire(t *testing.T) {
	pod := func(changes ...func(*corev1.Pod)) *corev1.Pod { // as the cache has it
		return expiryPods.Trimmed(expiryPod(changes...)).(*corev1.Pod)
	}
	tests := map[string]struct {
		after *corev1.Pod
		want  []added
	}{
		"it runs":  {after: pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }), want: atOnce(request(name))},
		"it goes":  {after: pod(func(p *corev1.Pod) { at := hour(4); p.DeletionTimestamp = &at }), want: atOnce(request(name))},
		"evicted":  {after: pod(func(p *corev1.Pod) { p.Status.Reason = "Evicted" }), want: atOnce(request(name))},
		"no image": {after: pod(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Waiting.Reason = "ErrImagePull" }), want: atOnce(request(name))},
		"it has ended": {after: pod(func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "{}"}}
		}), want: atOnce(request(name))},
		"an init container has ended": {after: pod(func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
		}), want: atOnce(request(name))},
		"nothing that matters": {after: pod(func(p *corev1.Pod) { p.Status.Conditions, p.ResourceVersion = nil, "2" })},
		"somebody else's":      {after: pod(func(p *corev1.Pod) { p.Status.Phase, p.OwnerReferences = corev1.PodRunning, nil })},
		"another kind of its name": {after: pod(func(p *corev1.Pod) {
			p.Status.Phase, p.OwnerReferences[0].APIVersion = corev1.PodRunning, "other.dev/v1"
		})},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s, q := newStation(t), &recordingQueue{}
			s.expiries.podEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: pod(), ObjectNew: test.after}, q)
			assert.Equal(t, test.want, q.Added)
		})
	}
	s, q := newStation(t), &recordingQueue{}
	s.expiries.podEvents().Delete(t.Context(), event.DeleteEvent{Object: pod()}, q)
	assert.Equal(t, atOnce(request(name)), q.Added)
	s.expiries.podEvents().Create(t.Context(), event.CreateEvent{Object: pod()}, q)
	assert.Len(t, q.Added, 1, "that it was made its turn knows")
}

func TestATurnIsToldOfItsPodOnlyWhileItRuns(t *testing.T) {
	s := newStation(t)
	_, err := s.expiries.Reconcile(t.Context(), request(name))
	require.NoError(t, err)
	assert.Equal(t, []string{"changed fdb-expiry team/" + name + " " + request(name).UID}, s.signals.Sent)
	s.signals.Err = errAway
	_, err = s.expiries.Reconcile(t.Context(), request(name))
	require.ErrorIs(t, err, errAway)
}

func TestANamespaceThatBeginsToEndIsToldItsBackups(t *testing.T) {
	namespace := func(terminating bool) client.Object {
		made := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace}}
		if at := hour(4); terminating {
			made.DeletionTimestamp = &at
		}
		return made
	}
	force := request(name)
	force.Force = true
	other := fdbInTeam("other", func(o *fdbObject) { o.Namespace = "elsewhere" })
	s := newStation(t, fdbInTeam(name), other)
	events := s.backups.namespaceEvents()
	update := func(before, after bool) []added {
		q := &recordingQueue{}
		events.Update(context.Background(), event.UpdateEvent{ObjectOld: namespace(before), ObjectNew: namespace(after)}, q)
		return q.Added
	}
	assert.Equal(t, atOnce(force), update(false, true))
	assert.Empty(t, update(true, true), "once")
	assert.Empty(t, update(false, false))
	q := &recordingQueue{}
	events.Create(t.Context(), event.CreateEvent{Object: namespace(false)}, q)
	assert.Empty(t, q.Added)
	events.Create(t.Context(), event.CreateEvent{Object: namespace(true)}, q)
	assert.Equal(t, atOnce(force), q.Added, "it may have started while nobody watched")
}
