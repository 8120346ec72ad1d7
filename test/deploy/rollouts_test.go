package deploy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/workflows/contract"
)

// workerDeployment are the fields of a WorkerDeployment that we set.
type workerDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas *int32                 `json:"replicas"`
		Template corev1.PodTemplateSpec `json:"template"`
		Rollout  struct {
			Strategy string `json:"strategy"`
			Gate     struct {
				WorkflowType string `json:"workflowType"`
			} `json:"gate"`
			Steps []struct {
				RampPercentage int             `json:"rampPercentage"`
				PauseDuration  metav1.Duration `json:"pauseDuration"`
			} `json:"steps"`
		} `json:"rollout"`
		Sunset struct {
			ScaledownDelay metav1.Duration `json:"scaledownDelay"`
			DeleteDelay    metav1.Duration `json:"deleteDelay"`
		} `json:"sunset"`
		WorkerOptions struct {
			ConnectionRef     corev1.LocalObjectReference `json:"connectionRef"`
			TemporalNamespace string                      `json:"temporalNamespace"`
		} `json:"workerOptions"`
	} `json:"spec"`
}

// withAll renders overlays/rollouts with the components that it only mentions.
func withAll(t *testing.T) objects {
	t.Helper()
	return renderOverlay(t, overlayOfRollouts(t))
}

func overlayOfRollouts(t *testing.T) string {
	t.Helper()
	overlay := readFile(t, "deploy", "overlays", "rollouts", "kustomization.yaml")
	overlay = strings.ReplaceAll(overlay, "# - ../../components/", "- ../../components/")
	return strings.ReplaceAll(overlay, "../../", "BASE/")
}

// The names of deployments in Temporal have the cluster's ID, and that of FoundationDB ends in -fdb, or its worker does not start.
func TestTheWorkersWithVersionsAreTheControllers(t *testing.T) {
	all := withAll(t)
	assert.ElementsMatch(t, []string{
		"WorkerDeployment/holdfast-production-1", "WorkerDeployment/holdfast-production-1-fdb", "Connection/holdfast",
		"Deployment/holdfast-watcher", "Deployment/holdfast-drills", // which have no version
	}, all.ofKind("WorkerDeployment", "Connection", "Deployment").ids())
	plain := render(t, inCheckout(t, "deploy", "overlays", "rollouts"))
	assert.ElementsMatch(t, []string{"WorkerDeployment/holdfast-production-1", "Connection/holdfast", "Deployment/holdfast-watcher"},
		plain.ofKind("WorkerDeployment", "Connection", "Deployment").ids())

	settings := all.settings(t)
	connection := all.find(t, "Connection/holdfast")
	address, _, err := unstructured.NestedString(connection.Object, "spec", "hostPort")
	require.NoError(t, err)
	assert.Equal(t, settings.Data["TEMPORAL_ADDRESS"], address)
	for _, o := range all.ofKind("WorkerDeployment") {
		w := into[workerDeployment](t, o)
		assert.Equal(t, connection.GetNamespace(), w.Namespace, "a Connection is found in the same namespace only")
		assert.Equal(t, connection.GetName(), w.Spec.WorkerOptions.ConnectionRef.Name)
		assert.Equal(t, settings.Data["TEMPORAL_NAMESPACE"], w.Spec.WorkerOptions.TemporalNamespace)
		assert.Equal(t, contract.KindGate.Workflow, w.Spec.Rollout.Gate.WorkflowType)
		container := w.Spec.Template.Spec.Containers[0]
		assert.Equal(t, "registry.example.com/holdfast:v0.1.0", container.Image)
		assert.Equal(t, settings.Name, container.EnvFrom[0].ConfigMapRef.Name, "a changed setting is a new version")
		assert.GreaterOrEqual(t, w.Spec.Sunset.ScaledownDelay.Duration, time.Hour)
		last := 0
		for _, step := range w.Spec.Rollout.Steps { // what the controller's webhook demands beyond the schema
			assert.Greater(t, step.RampPercentage, last, "each step is more than the one before")
			assert.GreaterOrEqual(t, step.PauseDuration.Duration, 30*time.Second)
			last = step.RampPercentage
		}
	}
	fdb := into[workerDeployment](t, all.find(t, "WorkerDeployment/holdfast-production-1-fdb"))
	assert.Contains(t, fdb.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: "TEMPORAL_SHARED_BUILD_ID", Value: "v0.1.0"},
		"in the deployment that clusters share, the release")
}

// But for the worker's own name, what runs is what runs without the controller.
func TestTheControllersPodsAreTheDeployments(t *testing.T) {
	all, plain := withAll(t), renderOverlay(t, withFDB)
	set := map[string]bool{"TEMPORAL_API_KEY": true, "TEMPORAL_DEPLOYMENT_NAME": true, "TEMPORAL_SHARED_BUILD_ID": true}
	for made, name := range map[string]string{"holdfast-production-1": workerName, "holdfast-production-1-fdb": fdbName} {
		got := into[workerDeployment](t, all.find(t, "WorkerDeployment/"+made)).Spec.Template
		want := plain.deployment(t, name).Spec.Template
		for _, template := range []*corev1.PodTemplateSpec{&got, &want} {
			container := &template.Spec.Containers[0]
			container.Image, container.EnvFrom = "", nil
			var env []corev1.EnvVar
			for _, variable := range container.Env {
				if !set[variable.Name] {
					env = append(env, variable)
				}
			}
			container.Env = env
		}
		assert.Equal(t, want, got, name)
	}
}

// controllers returns the Deployment that the controller makes of a version: internal/k8s/deployments.go, release 1.11.
func (w *workerDeployment) controllers(build, address string) *appsv1.Deployment {
	selector := map[string]string{"temporal.io/deployment-name": w.Name, "temporal.io/build-id": build}
	template := w.Spec.Template.DeepCopy()
	for label, value := range selector {
		template.Labels[label] = value
	}
	for i := range template.Spec.Containers {
		container := &template.Spec.Containers[i]
		container.Env = append(container.Env,
			corev1.EnvVar{Name: "TEMPORAL_ADDRESS", Value: address},
			corev1.EnvVar{Name: "TEMPORAL_NAMESPACE", Value: w.Spec.WorkerOptions.TemporalNamespace},
			corev1.EnvVar{Name: "TEMPORAL_DEPLOYMENT_NAME", Value: w.Namespace + "/" + w.Name},
			corev1.EnvVar{Name: "TEMPORAL_WORKER_BUILD_ID", Value: build},
			corev1.EnvVar{Name: "TEMPORAL_TLS", Value: "true"},
			corev1.EnvVar{Name: "TEMPORAL_TLS_CLIENT_KEY_PATH", Value: "/etc/temporal/tls/tls.key"},
			corev1.EnvVar{Name: "TEMPORAL_TLS_CLIENT_CERT_PATH", Value: "/etc/temporal/tls/tls.crt"},
		)
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "temporal-tls", MountPath: "/etc/temporal/tls"})
	}
	template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{
		Name: "temporal-tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "holdfast-temporal"}},
	})
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-" + build, Labels: selector},
		Spec: appsv1.DeploymentSpec{
			Replicas: w.Spec.Replicas, Selector: &metav1.LabelSelector{MatchLabels: selector}, Template: *template,
		},
	}
}

// Two versions at a time: one budget counts the Pods of both, and all of them reach Temporal.
func TestWhatFindsPodsFindsThoseOfEveryVersion(t *testing.T) {
	all := withAll(t)
	policy := into[networkingv1.NetworkPolicy](t, all.find(t, "NetworkPolicy/holdfast-temporal"))
	for made, name := range map[string]string{"holdfast-production-1": workerName, "holdfast-production-1-fdb": fdbName} {
		w := into[workerDeployment](t, all.find(t, "WorkerDeployment/"+made))
		budget := into[policyv1.PodDisruptionBudget](t, all.find(t, "PodDisruptionBudget/"+name))
		first, second := w.controllers("v1", "a:1"), w.controllers("v2", "a:1")
		assert.False(t, matches(t, first.Spec.Selector, second.Spec.Template.Labels), "a Deployment has its own Pods alone")
		for _, each := range []*appsv1.Deployment{first, second} {
			pod := each.Spec.Template.Labels
			assert.True(t, matches(t, budget.Spec.Selector, pod), name)
			assert.True(t, lets(t, policy, caller{pod: pod}, 7233), name)
			assert.Equal(t, "holdfast", pod["app.kubernetes.io/part-of"], "the PodMonitor's")
			assert.Equal(t, name, each.Spec.Template.Spec.ServiceAccountName)
		}
	}
}

// The API server takes the manifests, by the controller's schema, and the Deployments that come of them; and what is wrong it does not.
func TestTheControllersSchemaTakesTheManifests(t *testing.T) {
	stack, all := theJudge(t).stack, withAll(t)
	ctx, kube := t.Context(), theJudge(t).stack.Client()
	require.NoError(t, stack.Apply(ctx, readObjects(t, "test/deploy/testdata/workercontroller")...))
	require.NoError(t, client.IgnoreAlreadyExists(kube.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "velero"}})))
	strict := client.WithFieldValidation(kube, metav1.FieldValidationStrict)
	for _, o := range all.ofKind("WorkerDeployment", "Connection") {
		eventually.Succeeds(t, time.Minute, func() error { // a kind is served a moment after it is known
			return strict.Create(ctx, o.DeepCopy(), client.DryRunAll)
		})
	}
	for _, o := range all.ofKind("WorkerDeployment") {
		w := into[workerDeployment](t, o)
		require.NoError(t, strict.Create(ctx, w.controllers("v0.1.0-abcd", "a:1"), client.DryRunAll), id(o))
	}
	for want, change := range map[string]func(o map[string]any){
		"unknown field": func(o map[string]any) { o["selector"] = map[string]any{} },
		"steps are required for Progressive rollout": func(o map[string]any) { delete(o["rollout"].(map[string]any), "steps") },
		"spec.workerOptions: Required value":         func(o map[string]any) { delete(o, "workerOptions") },
		"pause duration must be at least 30s": func(o map[string]any) {
			o["rollout"].(map[string]any)["steps"].([]any)[0].(map[string]any)["pauseDuration"] = "10s"
		},
		"spec.rollout.gate.workflowType: Required value": func(o map[string]any) { o["rollout"].(map[string]any)["gate"] = map[string]any{} },
	} {
		wrong := all.find(t, "WorkerDeployment/holdfast-production-1").DeepCopy()
		change(wrong.Object["spec"].(map[string]any))
		require.ErrorContains(t, strict.Create(ctx, wrong, client.DryRunAll), want, fmt.Sprint(want))
	}
}
