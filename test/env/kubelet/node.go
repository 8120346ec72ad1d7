package kubelet

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/retry"
)

const heartbeatPeriod = 10 * time.Second

// register makes the node and says that it is ready.
func (k *Kubelet) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: NodeName, Labels: k.nodeLabels()}}
	_, err := k.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the node: %w", err)
	}
	return k.reportNode(ctx, corev1.ConditionTrue, "KubeletReady")
}

func (k *Kubelet) nodeLabels() map[string]string {
	all := map[string]string{
		corev1.LabelHostname: NodeName, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}
	maps.Copy(all, k.options.NodeLabels)
	return all
}

// reportNode writes the node's condition, and takes away the taints with which the API server makes a node.
func (k *Kubelet) reportNode(ctx context.Context, ready corev1.ConditionStatus, reason string) error {
	nodes := k.client.CoreV1().Nodes()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := nodes.Get(ctx, NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(node.Spec.Taints) > 0 {
			node.Spec.Taints = nil
			if node, err = nodes.Update(ctx, node, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		now := metav1.Now()
		condition := corev1.NodeCondition{
			Type: corev1.NodeReady, Status: ready, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now,
		}
		for _, old := range node.Status.Conditions {
			if old.Type == condition.Type && old.Status == condition.Status {
				condition.LastTransitionTime = old.LastTransitionTime
			}
		}
		node.Status.Conditions = []corev1.NodeCondition{condition}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: loopback}}
		node.Status.Capacity = corev1.ResourceList{
			corev1.ResourcePods: resource.MustParse("10000"), corev1.ResourceCPU: resource.MustParse("10000"),
			corev1.ResourceMemory: resource.MustParse("100Ti"),
		}
		node.Status.Allocatable = node.Status.Capacity
		_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("report the node's state: %w", err)
	}
	return nil
}

func (k *Kubelet) heartbeat() {
	ticker := time.NewTicker(heartbeatPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-ticker.C:
		}
		if k.connected.on() {
			_ = k.register(k.ctx) // the next one may get through
		}
	}
}

// schedule binds a Pod to the node, or says why not. The caller holds the mutex.
func (k *Kubelet) schedule(pod *corev1.Pod) {
	if k.bindingPaused || k.binding[pod.UID] || pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 {
		return
	}
	k.binding[pod.UID] = true
	fits := labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(k.nodeLabels()))
	k.group.Go(func() {
		for k.connected.wait(k.ctx) == nil {
			var err error
			if fits {
				err = k.bind(pod)
			} else {
				err = k.refuse(pod)
			}
			if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
				return
			}
			select {
			case <-k.ctx.Done():
			case <-time.After(retryDelay):
			}
		}
	})
}

func (k *Kubelet) bind(pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(k.ctx, requestTimeout)
	defer cancel()
	return k.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: NodeName},
	}, metav1.CreateOptions{})
}

func (k *Kubelet) refuse(pod *corev1.Pod) error {
	return k.patchStatus(k.ctx, pod.Namespace, pod.Name, pod.UID, corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message:            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
		LastTransitionTime: metav1.Now(),
	}}})
}
