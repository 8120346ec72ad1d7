package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"holdfast.dev/holdfast/activities/fdb/agents"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	exitKilled     = exitSignal + 9
	exitTerminated = exitSignal + 15
	reasonNodeLost = "NodeLost"
)

// View returns the state of a pod of ours. If a pod's node is lost, the pod may still run: it has failed, but not ended.
func View(pod *corev1.Pod) contract.FDBPodView {
	view := contract.FDBPodView{
		Name: pod.Name, Found: true, Terminating: !pod.DeletionTimestamp.IsZero(), Created: pod.CreationTimestamp.Unix(),
	}
	if pod.CreationTimestamp.IsZero() {
		view.Created = 0
	}
	view.Started = started(pod)
	end := ended(pod)
	phase := pod.Status.Phase
	view.Ended = end != nil || phase == corev1.PodSucceeded || phase == corev1.PodFailed
	if end != nil {
		if result, err := ParseResult(end.Message, argumentsOf(pod)); err == nil {
			view.Result = &result
			return view
		}
	}
	switch {
	case view.Ended:
		view.Failed = bound(failure(pod, end))
	case phase == corev1.PodUnknown || pod.Status.Reason == reasonNodeLost:
		view.Failed = bound(said("its node is lost", "", pod.Status.Message))
	default:
		view.Waiting = bound(waiting(pod))
	}
	return view
}

// bound redacts a text of Kubernetes or of a tool, and shortens it.
func bound(text string) string { return fdb.Bound(fdb.Redact(text, nil), maxMessage) }

// started reports whether the container runs, or has run.
func started(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		return status.Name == agents.MainContainer && (status.State.Running != nil || status.State.Terminated != nil)
	})
}

// ended returns how the container has ended; nil if it has not.
func ended(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for i := range pod.Status.ContainerStatuses {
		if status := &pod.Status.ContainerStatuses[i]; status.Name == agents.MainContainer {
			return status.State.Terminated
		}
	}
	return nil
}

// failure says why a pod has ended without a result.
func failure(pod *corev1.Pod, end *corev1.ContainerStateTerminated) string {
	if pod.Status.Reason != "" { // Evicted, NodeShutdown and others that end a whole pod
		return said("the pod was ended", pod.Status.Reason, pod.Status.Message)
	}
	for _, status := range pod.Status.InitContainerStatuses {
		if t := status.State.Terminated; t != nil && t.ExitCode != 0 && end == nil {
			return said(fmt.Sprintf("init container %s ended with exit code %d", status.Name, t.ExitCode), t.Reason, t.Message)
		}
	}
	switch {
	case end == nil && !pod.DeletionTimestamp.IsZero():
		return "the pod was deleted before it had started"
	case end == nil:
		return said("the pod ended without having started", "", pod.Status.Message)
	case end.Reason == "OOMKilled":
		return "the pod ran out of memory: raise the limit of container foundationdb in spec.podTemplateSpec"
	case !pod.DeletionTimestamp.IsZero() && (end.ExitCode == exitKilled || end.ExitCode == exitTerminated):
		return "the pod was deleted before it had ended"
	case end.ExitCode == 0:
		_, err := ParseResult(end.Message, argumentsOf(pod))
		return fmt.Sprintf("the pod left no result: %v", err)
	}
	return said(fmt.Sprintf("the pod ended with exit code %d and without a result", end.ExitCode), end.Reason, end.Message)
}

// said appends what Kubernetes says, if anything, to a message.
func said(what, reason, message string) string {
	if reason == "Error" { // the reason for every exit code but 0
		reason = ""
	}
	words := slices.DeleteFunc([]string{what, reason, strings.TrimSpace(message)}, func(word string) bool { return word == "" })
	if reason != "" {
		words = append([]string{what + " (" + reason + ")"}, words[2:]...)
	}
	return strings.Join(words, ": ")
}

// passing are reasons for which every pod waits for a moment.
var passing = []string{"", "PodInitializing", "ContainerCreating"}

// waiting says what a pod waits for, if somebody may have to act.
func waiting(pod *corev1.Pod) string {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := status.State.Waiting; w != nil && !slices.Contains(passing, w.Reason) {
			return said(w.Reason, "", w.Message)
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return said(cmp.Or(condition.Reason, corev1.PodReasonUnschedulable), "", condition.Message)
		}
	}
	return ""
}
