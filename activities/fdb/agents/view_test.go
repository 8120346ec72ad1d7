package agents_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"holdfast.dev/holdfast/activities/fdb/agents"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// live is the Deployment as stored by the API server, with defaults, and with the status that its controller writes.
func live(t *testing.T, wanted *appsv1.Deployment) *appsv1.Deployment {
	t.Helper()
	d := wanted.DeepCopy()
	d.Generation, d.UID = 3, "deployment"
	d.Annotations["deployment.kubernetes.io/revision"] = "1"
	d.Spec.Strategy = appsv1.DeploymentStrategy{
		Type: appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: new(intstr.FromString("25%")), MaxUnavailable: new(intstr.FromString("25%")),
		},
	}
	d.Spec.RevisionHistoryLimit, d.Spec.ProgressDeadlineSeconds = new(int32(10)), new(int32(600))
	pod := &d.Spec.Template.Spec
	pod.RestartPolicy, pod.DNSPolicy, pod.SchedulerName = corev1.RestartPolicyAlways, corev1.DNSClusterFirst, "default-scheduler"
	pod.TerminationGracePeriodSeconds = new(int64(30))
	for _, list := range [][]corev1.Container{pod.Containers, pod.InitContainers} {
		for i := range list {
			list[i].TerminationMessagePath, list[i].TerminationMessagePolicy = "/dev/termination-log", corev1.TerminationMessageReadFile
			list[i].ImagePullPolicy = corev1.PullIfNotPresent
		}
	}
	find(t, pod.Containers[0].Env, "FDB_MACHINE_ID").ValueFrom.FieldRef.APIVersion = "v1"
	for _, volume := range pod.Volumes {
		if volume.ConfigMap != nil {
			volume.ConfigMap.DefaultMode = new(int32(0o644))
		}
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: 3, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas, ReadyReplicas: *d.Spec.Replicas,
		AvailableReplicas: *d.Spec.Replicas,
	}
	return d
}

func TestAgentsAsTheyShallBe(t *testing.T) {
	object := backup("")
	wanted := build(t, object)
	all := contract.FDBAgentsView{Exists: true, Ours: true, Current: true, RolledOut: true, Wanted: 2, Ready: 2}
	assert.Equal(t, all, agents.View(object, live(t, wanted), wanted))

	object.Spec.AgentCount = new(int32(0))
	wanted = build(t, object)
	assert.Equal(t, contract.FDBAgentsView{Exists: true, Ours: true, Current: true, RolledOut: true},
		agents.View(object, live(t, wanted), wanted), "none are wanted, none are there")
}

func TestWhoseTheDeploymentIs(t *testing.T) {
	object := backup("")
	wanted := build(t, object)
	foreign := contract.FDBAgentsView{Exists: true, Wanted: 2}
	tests := map[string]struct {
		change func(*appsv1.Deployment)
		want   contract.FDBAgentsView
	}{
		"nobody's":                 {func(d *appsv1.Deployment) { d.OwnerReferences = nil }, foreign},
		"an earlier namesake's":    {func(d *appsv1.Deployment) { d.OwnerReferences[0].UID = "uid-0" }, foreign},
		"owned but not controlled": {func(d *appsv1.Deployment) { d.OwnerReferences[0].Controller = nil }, foreign},
		"another kind's": {func(d *appsv1.Deployment) {
			d.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "nightly", UID: "x", Controller: new(true)}}
		}, foreign},
		"ours, and another owner": {func(d *appsv1.Deployment) {
			d.OwnerReferences = append(d.OwnerReferences, metav1.OwnerReference{Kind: "App", Name: "x", UID: "x"})
		}, contract.FDBAgentsView{Exists: true, Ours: true, Current: true, RolledOut: true, Wanted: 2, Ready: 2}},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			existing := live(t, wanted)
			tt.change(existing)
			assert.Equal(t, tt.want, agents.View(object, existing, wanted))
		})
	}
	assert.Equal(t, contract.FDBAgentsView{Wanted: 2}, agents.View(object, nil, wanted))
	assert.Equal(t, contract.FDBAgentsView{Wanted: 2}, agents.View(object, nil, nil))
	assert.Equal(t, contract.FDBAgentsView{Exists: true, Ours: true, RolledOut: true, Wanted: 2, Ready: 2},
		agents.View(object, live(t, wanted), nil), "a template that cannot be used")
}

func TestDriftIsFound(t *testing.T) {
	object := backup(`{"spec":{"nodeSelector":{"a":"b"},"hostNetwork":true,` +
		`"containers":[{"name":"foundationdb","env":[{"name":"EMPTY"}]},{"name":"more","image":"m:1"}]}}`)
	wanted := build(t, object)
	main := func(d *appsv1.Deployment) *corev1.Container { return &d.Spec.Template.Spec.Containers[0] }
	require.Equal(t, agents.MainContainer, main(wanted).Name)
	for title, change := range map[string]func(*appsv1.Deployment){
		"written for another spec":        func(d *appsv1.Deployment) { d.Annotations[fdbv1alpha1.AnnotationAgentsHash] = "0" },
		"the hash removed":                func(d *appsv1.Deployment) { d.Annotations = nil },
		"scaled up":                       func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(9)) },
		"scaled down to none":             func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) },
		"a label removed":                 func(d *appsv1.Deployment) { d.Labels = nil },
		"the roll-out paused":             func(d *appsv1.Deployment) { d.Spec.Paused = true },
		"another image":                   func(d *appsv1.Deployment) { main(d).Image = "x:1" },
		"another command":                 func(d *appsv1.Deployment) { main(d).Command = []string{"sleep"} },
		"no command":                      func(d *appsv1.Deployment) { main(d).Command = nil },
		"an argument more":                func(d *appsv1.Deployment) { main(d).Args = append(main(d).Args, "--x") },
		"arguments in another order":      func(d *appsv1.Deployment) { main(d).Args[0], main(d).Args[1] = main(d).Args[1], main(d).Args[0] },
		"arguments where none are":        func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[1].Args = []string{"x"} },
		"a variable changed":              func(d *appsv1.Deployment) { main(d).Env[0].Value = "/x" },
		"a variable removed":              func(d *appsv1.Deployment) { main(d).Env = main(d).Env[1:] },
		"the last variable removed":       func(d *appsv1.Deployment) { main(d).Env = main(d).Env[:len(main(d).Env)-1] },
		"a variable added":                func(d *appsv1.Deployment) { main(d).Env = append(main(d).Env, corev1.EnvVar{Name: "X"}) },
		"an empty variable given a value": func(d *appsv1.Deployment) { v := find(t, main(d).Env, "EMPTY"); v.Value = "x" },
		"variables from a ConfigMap":      func(d *appsv1.Deployment) { main(d).EnvFrom = []corev1.EnvFromSource{{Prefix: "X"}} },
		"a variable in a container without": func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[1].Env = []corev1.EnvVar{{Name: "X"}}
		},
		"a container added": func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "x"})
		},
		"a container removed": func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers = d.Spec.Template.Spec.Containers[:1] },
		"no init container":   func(d *appsv1.Deployment) { d.Spec.Template.Spec.InitContainers = nil },
		"a volume of another kind": func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
		},
		"a volume added": func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Volumes = append(d.Spec.Template.Spec.Volumes, corev1.Volume{Name: "x"})
		},
		"another Secret":             func(d *appsv1.Deployment) { d.Spec.Template.Spec.Volumes[3].Secret.SecretName = "x" },
		"a mount removed":            func(d *appsv1.Deployment) { main(d).VolumeMounts = main(d).VolumeMounts[1:] },
		"a mount written to":         func(d *appsv1.Deployment) { main(d).VolumeMounts[2].ReadOnly = false },
		"fewer resources":            func(d *appsv1.Deployment) { main(d).Resources = corev1.ResourceRequirements{} },
		"privileges":                 func(d *appsv1.Deployment) { main(d).SecurityContext.AllowPrivilegeEscalation = new(true) },
		"no security context":        func(d *appsv1.Deployment) { d.Spec.Template.Spec.SecurityContext = nil },
		"a probe":                    func(d *appsv1.Deployment) { main(d).LivenessProbe = &corev1.Probe{} },
		"a service account's token":  func(d *appsv1.Deployment) { d.Spec.Template.Spec.AutomountServiceAccountToken = nil },
		"a node selector changed":    func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector["a"] = "c" },
		"a true that became false":   func(d *appsv1.Deployment) { d.Spec.Template.Spec.HostNetwork = false },
		"a pod label removed":        func(d *appsv1.Deployment) { d.Spec.Template.Labels = nil },
		"it is being deleted itself": func(d *appsv1.Deployment) { d.DeletionTimestamp = new(metav1.Now()) },
	} {
		t.Run(title, func(t *testing.T) {
			existing := live(t, wanted)
			require.True(t, agents.View(object, existing, wanted).Current, "before")
			change(existing)
			view := agents.View(object, existing, wanted)
			assert.False(t, view.Current)
			assert.True(t, view.Ours)
			merged, err := agents.Merge(existing, wanted)
			require.NoError(t, err)
			merged.DeletionTimestamp = nil
			assert.True(t, agents.View(object, merged, wanted).Current, "Merge corrects it")
		})
	}
}

func find(t *testing.T, env []corev1.EnvVar, name string) *corev1.EnvVar {
	t.Helper()
	for i := range env {
		if env[i].Name == name {
			return &env[i]
		}
	}
	require.Fail(t, "no variable "+name)
	return nil
}

// What others may add without being undone.
func TestWhatIsNoDrift(t *testing.T) {
	object := backup("")
	wanted := build(t, object)
	for title, change := range map[string]func(*appsv1.Deployment){
		"labels and annotations": func(d *appsv1.Deployment) { d.Labels["x"], d.Annotations["x"] = "y", "z" },
		"a restart by kubectl": func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
		},
		"another strategy":       func(d *appsv1.Deployment) { d.Spec.Strategy = appsv1.DeploymentStrategy{Type: "Recreate"} },
		"fewer old revisions":    func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = new(int32(1)) },
		"a toleration by policy": func(d *appsv1.Deployment) { d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "a"}} },
	} {
		t.Run(title, func(t *testing.T) {
			existing := live(t, wanted)
			change(existing)
			assert.True(t, agents.View(object, existing, wanted).Current)
		})
	}
}

func TestRollOut(t *testing.T) {
	object := backup("")
	wanted := build(t, object)
	for title, tt := range map[string]struct {
		change func(*appsv1.Deployment)
		ready  int32
	}{
		"the controller has not seen it": {func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 2 }, 2},
		"nothing is there yet":           {func(d *appsv1.Deployment) { d.Status = appsv1.DeploymentStatus{ObservedGeneration: 3} }, 0},
		"one is not ready":               {func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 1 }, 1},
		"one is of the old template":     {func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }, 2},
		"an old one still runs":          {func(d *appsv1.Deployment) { d.Status.Replicas = 3 }, 2},
		"too many are ready":             {func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 3 }, 3},
		"it is being deleted":            {func(d *appsv1.Deployment) { d.DeletionTimestamp = new(metav1.Now()) }, 2},
	} {
		t.Run(title, func(t *testing.T) {
			existing := live(t, wanted)
			tt.change(existing)
			view := agents.View(object, existing, wanted)
			assert.False(t, view.RolledOut)
			assert.Equal(t, tt.ready, view.Ready)
			assert.Equal(t, int32(2), view.Wanted)
		})
	}
}
