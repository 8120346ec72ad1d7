package drill

import (
	"context"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/verdict"
	"holdfast.dev/holdfast/workflows/contract"
)

// checkJob reads how the Job of the drill has ended from its Pod, of which there is one.
func (a *Activities) checkJob(ctx context.Context, o *objects, step contract.DrillStep) ([]finding, error) {
	if step.Refused != "" {
		return []finding{inconclusive("the Job was not admitted: %s", step.Refused)}, nil
	}
	pods, err := a.pods(ctx, o, client.MatchingLabels{batchv1.JobNameLabel: o.Name})
	if err != nil {
		return nil, err
	}
	for i := range pods {
		switch pod := &pods[i]; pod.Status.Phase {
		case corev1.PodSucceeded:
			return nil, nil
		case corev1.PodFailed:
			if why := disrupted(pod); why != "" {
				return []finding{inconclusive("the cluster ended the Job's Pod: %s", why)}, nil
			}
			return jobFailure(pod), nil
		}
	}
	switch late := o.View().Late; {
	case !late:
		return nil, &activities.NotYetError{For: "the Job to end"}
	case len(pods) == 0:
		return []finding{inconclusive("the Job did not run: its Pod was not created within %s", o.Drill.Spec.Timeout)}, nil
	}
	findings := []finding{wrong("the Job has not ended within %s", o.Drill.Spec.Timeout)}
	why, err := a.podProblems(ctx, o)
	return append(findings, why...), err
}

// disrupted says why the cluster has ended a Pod; empty if the Pod has ended by itself.
func disrupted(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			return condition.Reason + ": " + condition.Message
		}
	}
	return ""
}

// jobFailure says how the containers of a Job's Pod have failed, with the end of what they printed.
func jobFailure(pod *corev1.Pod) (findings []finding) {
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		ended := container.State.Terminated
		if ended == nil || ended.ExitCode == 0 {
			continue
		}
		findings = append(findings, wrong("the Job's container %s ended with exit code %d", container.Name, ended.ExitCode))
		// A finding of its own: the first one is the condition's message, which Events and the backup repeat.
		if printed := strings.TrimSpace(ended.Message); printed != "" {
			findings = append(findings, wrong("%s", withEnd("container "+container.Name+" printed: ", printed)))
		}
	}
	if len(findings) == 0 {
		findings = append(findings, wrong("the Job's Pod has failed: %s %s", pod.Status.Reason, pod.Status.Message))
	}
	return findings
}

// withEnd appends the end of what a container has printed, as far as a finding has room.
func withEnd(text, printed string) string {
	if room := verdict.MaxMessage - len(text); len(printed) > room {
		const cut = "…"
		printed = cut + strings.ToValidUTF8(printed[len(printed)-room+len(cut):], "")
	}
	return text + printed
}
