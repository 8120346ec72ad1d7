package kubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/test/env/spawn"
)

const evicted = "Evicted"

// RunningContainer is a container that runs now.
type RunningContainer struct {
	Namespace, Pod, Container string
	UID                       types.UID // of the Pod
	PID                       int       // of its process and process group; 0 when it runs in this process
}

// Running returns the containers that run now, also those of a lost node, in the order of their names.
func (k *Kubelet) Running() []RunningContainer {
	var all []RunningContainer
	for _, w := range k.allWorkers() {
		w.mu.Lock()
		for _, c := range slices.Concat(w.inits, w.mains) {
			if c.running != nil {
				all = append(all, RunningContainer{w.namespace, w.name, c.spec.Name, w.uid, c.running.pid})
			}
		}
		w.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b RunningContainer) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container))
	})
	return all
}

// Evict ends a Pod as under memory pressure: its processes end within their grace, and it stays as Failed with the reason
// Evicted.
func (k *Kubelet) Evict(namespace, name string) error {
	for _, w := range k.allWorkers() {
		if w.namespace == namespace && w.name == name {
			w.condemn(evicted, "The node was low on resource: memory.")
			return nil
		}
	}
	return fmt.Errorf("evict Pod %s/%s: it is not on the node", namespace, name)
}

// HoldTermination lets a Pod of that name that is being deleted neither end nor go, now or in the future, until release is
// called. A Pod that has ended before its deletion is removed by the API server itself: nothing holds that.
func (k *Kubelet) HoldTermination(namespace, name string) (release func()) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	k.mu.Lock()
	k.held[key]++
	k.mu.Unlock()
	return sync.OnceFunc(func() {
		k.mu.Lock()
		k.held[key]--
		k.mu.Unlock()
		k.wake()
	})
}

func (k *Kubelet) holds(namespace, name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held[types.NamespacedName{Namespace: namespace, Name: name}] > 0
}

// PauseBinding leaves new Pods without a node, until it is called with false.
func (k *Kubelet) PauseBinding(paused bool) {
	k.mu.Lock()
	k.bindingPaused = paused
	k.mu.Unlock()
	k.wake()
}

// LoseNode cuts the node off as a network failure does: its processes run on, nothing is told to the API server and nothing
// taken from it, and the node and its Pods are marked as not ready.
func (k *Kubelet) LoseNode(ctx context.Context) error {
	k.connected.set(false)
	if err := k.reportNode(ctx, corev1.ConditionUnknown, "NodeStatusUnknown"); err != nil {
		return err
	}
	var failed []error
	for _, w := range k.allWorkers() {
		w.pushing.Lock() // until the last report is through
		err := k.patchStatus(ctx, w.namespace, w.name, w.uid, corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now(),
		}}})
		w.pushing.Unlock()
		if err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, fmt.Errorf("mark Pod %s/%s: %w", w.namespace, w.name, err))
		}
	}
	return errors.Join(failed...)
}

// CrashNode is LoseNode with the power gone: all processes are killed, and none starts before ReturnNode.
func (k *Kubelet) CrashNode(ctx context.Context) error {
	k.connected.set(false)
	k.powered.set(false)
	for _, w := range k.allWorkers() {
		w.mu.Lock()
		for _, c := range slices.Concat(w.inits, w.mains) {
			if c.running != nil {
				c.running.kill()
			}
		}
		w.mu.Unlock()
	}
	return k.LoseNode(ctx)
}

// ReturnNode brings a lost node back. Its Pods go on by their restart policies, and those that were deleted meanwhile go.
func (k *Kubelet) ReturnNode(ctx context.Context) error {
	k.powered.set(true)
	k.connected.set(true)
	for _, w := range k.allWorkers() {
		w.forget()
	}
	k.wake()
	return k.register(ctx)
}

// DumpLogs writes the last lines of every container's log, also of Pods that are gone.
func (k *Kubelet) DumpLogs(out io.Writer, lines int) {
	files, err := filepath.Glob(filepath.Join(k.logs, "*.log"))
	if err != nil {
		return // only of a bad pattern
	}
	for _, file := range files {
		fmt.Fprintf(out, "--- end of %s\n%s\n", file, spawn.LogTail(file, lines))
	}
}

func (k *Kubelet) allWorkers() []*podWorker {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make([]*podWorker, 0, len(k.workers))
	for _, w := range k.workers {
		all = append(all, w)
	}
	return all
}

// event notes a warning on a Pod, as far as the API server takes it.
func (k *Kubelet) event(pod *corev1.Pod, reason, message string) {
	ctx, cancel := context.WithTimeout(k.ctx, requestTimeout)
	defer cancel()
	now := metav1.NewTime(time.Now())
	_, err := k.client.CoreV1().Events(pod.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, GenerateName: pod.Name + "."},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		},
		Type: corev1.EventTypeWarning, Reason: reason, Message: message, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "kubelet", Host: NodeName},
	}, metav1.CreateOptions{})
	if err != nil && k.ctx.Err() == nil {
		k.say("kubelet: Pod %s/%s: %s: %s", pod.Namespace, pod.Name, reason, message)
	}
}
