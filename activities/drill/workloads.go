package drill

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/restored"
	"holdfast.dev/holdfast/workflows/contract"
)

// checkWorkloads checks whether what was restored works.
func (a *Activities) checkWorkloads(ctx context.Context, o *objects, _ contract.DrillStep) ([]finding, error) {
	objects := &restored.Objects{
		Client: activities.Limited(a.Client), Namespace: o.Name, Restore: o.Name, Progress: func() { activity.RecordHeartbeat(ctx) },
	}
	states, err := objects.States(ctx)
	if err != nil {
		return nil, err
	}
	states = slices.DeleteFunc(states, func(state restored.State) bool { return state.Problem == "" })
	if len(states) == 0 {
		return a.steady(ctx, o)
	}
	refused, err := a.refusals(ctx, o)
	if err != nil {
		return nil, err
	}
	var findings []finding
	var waits []string
	for _, state := range states {
		why := refused[state.Object]
		if what := excused(why); what != "" { // no time brings its Pods
			findings = append(findings, inconclusive("a drill does not run %s: %s", what, why))
			continue
		}
		findings = append(findings, wrong("%s", strings.TrimSuffix(state.Object+" "+state.Problem+": "+why, ": ")))
		if !state.Broken {
			waits = append(waits, state.Object)
		}
	}
	switch late := o.View().Late; {
	case len(waits) == 0:
		return findings, nil
	case !late:
		return nil, &activities.NotYetError{For: summed(waits)}
	}
	why, err := a.podProblems(ctx, o)
	return append(findings, why...), err
}

// refusals says why the API server refuses the Pods of a workload, or the claims of a StatefulSet, by `<kind> <name>`. A
// Deployment has a condition for that, the others an Event.
func (a *Activities) refusals(ctx context.Context, o *objects) (map[string]string, error) {
	var deployments appsv1.DeploymentList
	if err := a.Client.List(ctx, &deployments, client.InNamespace(o.Name)); err != nil {
		return nil, fmt.Errorf("list Deployments in %s: %w", o.Name, err)
	}
	why := map[string]string{}
	for i := range deployments.Items {
		for _, condition := range deployments.Items[i].Status.Conditions {
			if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
				why["Deployment "+deployments.Items[i].Name] = condition.Message
			}
		}
	}
	return why, a.refusedByEvents(ctx, o, why)
}

// refusedByEvents adds the StatefulSets and DaemonSets that lack Pods.
func (a *Activities) refusedByEvents(ctx context.Context, o *objects, why map[string]string) error {
	var statefulSets appsv1.StatefulSetList
	var daemonSets appsv1.DaemonSetList
	var events corev1.EventList
	for _, list := range []client.ObjectList{&statefulSets, &daemonSets, &events} {
		if err := a.Client.List(ctx, list, client.InNamespace(o.Name)); err != nil {
			return fmt.Errorf("list %T in %s: %w", list, o.Name, err)
		}
	}
	lacking := map[string]bool{}
	for i := range statefulSets.Items {
		set := &statefulSets.Items[i]
		lacking["StatefulSet "+set.Name] = set.Status.Replicas < ptr.Deref(set.Spec.Replicas, 1)
	}
	for i := range daemonSets.Items {
		status := &daemonSets.Items[i].Status
		lacking["DaemonSet "+daemonSets.Items[i].Name] = status.CurrentNumberScheduled < status.DesiredNumberScheduled
	}
	for i := range events.Items {
		of := events.Items[i].InvolvedObject.Kind + " " + events.Items[i].InvolvedObject.Name
		if events.Items[i].Reason == failedCreate && lacking[of] {
			why[of] = events.Items[i].Message
		}
	}
	return nil
}

// failedCreate is the reason of the Event about a Pod or a claim that a workload's controller could not create.
const failedCreate = "FailedCreate"

// pods are the Pods of the drill that match.
func (a *Activities) pods(ctx context.Context, o *objects, matching ...client.ListOption) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := a.Client.List(ctx, &pods, append(matching, client.InNamespace(o.Name))...); err != nil {
		return nil, fmt.Errorf("list Pods in %s: %w", o.Name, err)
	}
	return pods.Items, nil
}

// steadyFor is how long all Pods must have been ready: one that ends by itself is ready for a moment, again and again.
const steadyFor = 10 * time.Second

// steady notes since when all Pods are ready, in memory, and waits until they have been for long enough.
func (a *Activities) steady(ctx context.Context, o *objects) ([]finding, error) {
	pods, err := a.pods(ctx, o)
	if err != nil {
		return nil, err
	}
	var last time.Time
	for i := range pods {
		for _, condition := range pods[i].Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue &&
				condition.LastTransitionTime.After(last) {
				last = condition.LastTransitionTime.Time
			}
		}
	}
	switch view := o.View(); {
	case o.At.Sub(last) >= steadyFor:
		o.ready = last
		return nil, nil
	case view.Late:
		since := last.UTC().Format(time.TimeOnly)
		return []finding{wrong("the Pods do not stay ready for %s: the last became ready at %s", steadyFor, since)}, nil
	}
	return nil, &activities.NotYetError{For: "the Pods to stay ready"}
}

// podProblems says why Pods of the drill do not run.
func (a *Activities) podProblems(ctx context.Context, o *objects) (findings []finding, err error) {
	pods, err := a.pods(ctx, o)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		pod := &pods[i]
		for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			switch state := container.State; {
			case state.Waiting != nil && state.Waiting.Reason != "":
				findings = append(findings, wrong("Pod %s: container %s waits: %s %s", pod.Name, container.Name, state.Waiting.Reason,
					state.Waiting.Message))
			case state.Terminated != nil && state.Terminated.ExitCode != 0:
				findings = append(findings, wrong("Pod %s: container %s ended with exit code %d", pod.Name, container.Name,
					state.Terminated.ExitCode))
			}
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				findings = append(findings, wrong("Pod %s is not scheduled: %s", pod.Name, condition.Message))
			}
		}
	}
	return findings, nil
}
