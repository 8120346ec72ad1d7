package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pushLoop tells the API server what becomes of the Pod, as soon as it listens.
func (w *podWorker) pushLoop() {
	notify(w.dirty)
	for {
		select {
		case <-w.closed.Done():
			return
		case <-w.dirty:
		}
		if w.k.connected.wait(w.closed) != nil {
			return
		}
		if w.push() {
			continue
		}
		notify(w.dirty)
		select {
		case <-w.closed.Done():
			return
		case <-time.After(retryDelay):
		}
	}
}

// push writes the status, unless the API server has it already. False means: try again.
func (w *podWorker) push() bool {
	w.pushing.Lock()
	defer w.pushing.Unlock()
	status := w.status()
	if w.pushed != nil && equality.Semantic.DeepEqual(*w.pushed, status) {
		return true
	}
	err := w.k.patchStatus(w.closed, w.namespace, w.name, w.uid, status)
	if err == nil {
		w.pushed = &status
	}
	return err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}

// forget has the status written again although it is the same.
func (w *podWorker) forget() {
	w.pushing.Lock()
	w.pushed = nil
	w.pushing.Unlock()
	notify(w.dirty)
}

// patchStatus writes a status over that of a Pod; a condition that it lacks stays.
func (k *Kubelet) patchStatus(
	ctx context.Context, namespace, name string, uid types.UID, status corev1.PodStatus,
) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": status})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err = k.client.CoreV1().Pods(namespace).Patch(
		ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// podIP is an address for the API server alone, which refuses endpoints that are loopback addresses. All listens on those; a
// container that reads its own address gets one.
func podIP(uid types.UID) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uid))
	sum := hash.Sum32()
	return fmt.Sprintf("10.244.%d.%d", sum>>8&0xff, 1+sum&0xff%254)
}

func (w *podWorker) status() corev1.PodStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	status := corev1.PodStatus{
		Phase: w.phase(), StartTime: &w.started,
		HostIP: loopback, HostIPs: []corev1.HostIP{{IP: loopback}},
		PodIP: podIP(w.uid), PodIPs: []corev1.PodIP{{IP: podIP(w.uid)}},
	}
	if w.verdict != nil && w.done {
		status.Reason, status.Message = w.verdict.reason, w.verdict.message
	}
	for _, c := range w.inits {
		s := c.status()
		s.Ready = c.succeeded() || (c.sidecar() && c.state.Running != nil)
		status.InitContainerStatuses = append(status.InitContainerStatuses, s)
	}
	ready := w.initialized
	for _, c := range w.mains {
		s := c.status()
		s.Ready = c.state.Running != nil
		ready = ready && s.Ready
		status.ContainerStatuses = append(status.ContainerStatuses, s)
	}
	reason := ""
	if !ready {
		reason = "ContainersNotReady"
	}
	switch status.Phase {
	case corev1.PodSucceeded:
		reason = "PodCompleted"
	case corev1.PodFailed:
		reason = "PodFailed"
	}
	w.condition(corev1.PodScheduled, true, "")
	w.condition(corev1.PodReadyToStartContainers, w.mounted && !w.done, "")
	w.condition(corev1.PodInitialized, w.initialized, unless(w.initialized, "ContainersNotInitialized"))
	w.condition(corev1.ContainersReady, ready, reason)
	w.condition(corev1.PodReady, ready, reason)
	if w.verdict != nil && w.verdict.reason == evicted {
		w.condition(corev1.DisruptionTarget, true, corev1.PodReasonTerminationByKubelet)
	}
	status.Conditions = slices.Clone(w.conditions)
	return status
}

func unless(ok bool, reason string) string {
	if ok {
		return ""
	}
	return reason
}

// condition sets a condition; the time of its transition stays as long as its status does.
func (w *podWorker) condition(kind corev1.PodConditionType, holds bool, reason string) {
	status := corev1.ConditionFalse
	if holds {
		status = corev1.ConditionTrue
	}
	i := slices.IndexFunc(w.conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		i = len(w.conditions)
		w.conditions = append(w.conditions, corev1.PodCondition{Type: kind})
	}
	c := &w.conditions[i]
	if c.Status != status {
		c.Status, c.LastTransitionTime = status, metav1.Now()
	}
	c.Reason = reason
}

// phase follows the kubelet: a container that never ran keeps the Pod pending, one that runs again does not.
func (w *podWorker) phase() corev1.PodPhase {
	all := slices.Concat(w.inits, w.mains)
	if w.done {
		failed := slices.ContainsFunc(all, func(c *container) bool { return !c.succeeded() && !c.sidecar() })
		if w.verdict != nil || failed {
			return corev1.PodFailed
		}
		return corev1.PodSucceeded
	}
	neverRan := func(c *container) bool { return c.state.Waiting != nil && c.last.Terminated == nil }
	if !w.initialized || slices.ContainsFunc(w.mains, neverRan) {
		return corev1.PodPending
	}
	return corev1.PodRunning
}

func (c *container) status() corev1.ContainerStatus {
	started := c.state.Running != nil
	status := corev1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, State: c.state, LastTerminationState: c.last,
		RestartCount: c.restarts, Started: &started,
	}
	if c.state.Running != nil || c.state.Terminated != nil || c.last.Terminated != nil {
		status.ImageID = "holdfast://" + c.spec.Image
	}
	return status
}
