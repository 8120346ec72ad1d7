package namespaces

import (
	"context"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/drill/gather"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// jobGrace is how many seconds a container of the Job has to end, at most.
	jobGrace = 30
	// jobDeadline is how many seconds the Job runs longer than its drill, at most: the drill deletes it.
	jobDeadline     = 60
	maxRefusedBytes = 400
)

// StartJob creates the Job of a drill, unless it exists. A template that the API server does not accept in this namespace is
// refused.
func (a *Activities) StartJob(ctx context.Context, in contract.DrillNamespace) (contract.DrillNamespaceView, error) {
	view := contract.DrillNamespaceView{}
	if err := a.check(in); err != nil {
		return view, err
	}
	present, err := a.read(ctx, in)
	if err != nil || present == nil || !present.DeletionTimestamp.IsZero() {
		return view, err
	}
	view.Exists = true
	drill := &holdfastv1alpha1.RestoreDrill{}
	exists, err := k8s.Get(ctx, a.Client, holdfastv1alpha1.KindRestoreDrill, in.Ref.Namespace, in.Ref.Name, drill)
	if err != nil || !exists || string(drill.UID) != in.Ref.UID || drill.Spec.Checks.Job == nil {
		return view, err
	}
	template, unfit := gather.JobTemplate(drill.Spec.Checks.Job)
	if unfit != nil {
		view.Refused = unfit.Error()
		return view, nil //nolint:nilerr // the tenant's mistake, which no retry cures
	}
	job := jobOf(in, drill, template)
	pod := &corev1.Pod{ObjectMeta: job.Spec.Template.ObjectMeta, Spec: job.Spec.Template.Spec}
	pod.Namespace, pod.Name = job.Namespace, job.Name
	// A Job whose Pod is refused would wait for ever: only an Event says why. One that exists has its Pod.
	dryRun := []client.CreateOption{client.DryRunAll}
	for _, object := range []struct {
		made    client.Object
		options []client.CreateOption
	}{{job.DeepCopy(), dryRun}, {pod, dryRun}, {job, nil}} {
		err := a.Client.Create(ctx, object.made, object.options...)
		switch {
		case err == nil:
		case apierrors.IsAlreadyExists(err):
			return view, nil
		case refused(err):
			view.Refused = shorten.Text(err.Error(), maxRefusedBytes)
			return view, nil
		default:
			return view, fmt.Errorf("create %T %s: %w", object.made, client.ObjectKeyFromObject(object.made), err)
		}
	}
	return view, nil
}

// refused: the tenant's template is the reason, not a right that the worker lacks.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		(apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "cannot create resource"))
}

// jobOf is the Job of a drill. Its Pod runs once, mounts no token by default, and leaves the end of what it prints in its status.
func jobOf(in contract.DrillNamespace, drill *holdfastv1alpha1.RestoreDrill, template *corev1.PodTemplateSpec) *batchv1.Job {
	deadline := int64(gather.DurationOf(drill.Spec.Timeout).Seconds()) + jobDeadline
	noRetry, no, grace := int32(0), false, int64(jobGrace)
	made := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: in.Name, Name: in.Name, Labels: map[string]string{holdfastv1alpha1.LabelDrill: in.Ref.UID},
		},
		Spec: batchv1.JobSpec{BackoffLimit: &noRetry, ActiveDeadlineSeconds: &deadline, Template: *template.DeepCopy()},
	}
	pod := &made.Spec.Template
	pod.ObjectMeta = metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations}
	pod.Spec.RestartPolicy, pod.Spec.AutomountServiceAccountToken = corev1.RestartPolicyNever, &no
	if asked := pod.Spec.TerminationGracePeriodSeconds; asked == nil || *asked > grace {
		pod.Spec.TerminationGracePeriodSeconds = &grace
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		}
	}
	return made
}
