package jobs_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/activities/fdb/agents"
	"holdfast.dev/holdfast/activities/fdb/jobs"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

const security = `{runAsNonRoot: true, runAsUser: 4059, runAsGroup: 4059, fsGroup: 4059, seccompProfile: {type: RuntimeDefault}}`

// The script is left out: other tests run it.
func TestThePodThatExpires(t *testing.T) {
	assertPod(t, build(t, "", expireStep()), `
restartPolicy: Never
terminationGracePeriodSeconds: 30
activeDeadlineSeconds: 4200
automountServiceAccountToken: false
securityContext: `+security+`
initContainers:
- name: foundationdb-kubernetes-init
  image: foundationdb/foundationdb-kubernetes-sidecar:7.3.63-1
  args: [--copy-file, fdb.cluster, --require-not-empty, fdb.cluster, --init-mode]
  resources: {}
  securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
  volumeMounts:
  - {name: config-map, mountPath: /var/input-files, readOnly: true}
  - {name: dynamic-conf, mountPath: /var/output-files}
containers:
- name: foundationdb
  image: foundationdb/foundationdb:7.3.63
  command: [/bin/bash, -c, SCRIPT, holdfast]
  args: [expire, "blobstore://lab@s3.local/a?bucket=fdb-backups", 2026/11/18.10:06:40+0000, 2026/11/18.11:05:40+0000]
  env:
  - {name: FDB_CLUSTER_FILE, value: /var/dynamic-conf/fdb.cluster}
  - {name: FDB_BLOB_CREDENTIALS, value: /var/backup-credentials/credentials}
  - {name: FDB_ZONE_ID, value: nightly}
  - {name: FDB_MACHINE_ID, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: HOLDFAST_RESULT, value: /dev/termination-log}
  - {name: HOLDFAST_DESCRIBE_SECONDS, value: "1200"}
  - {name: TMPDIR, value: /var/dynamic-conf}
  - {name: TZ, value: UTC}
  resources: {requests: {cpu: 100m, memory: 512Mi}, limits: {cpu: "1", memory: 2Gi}}
  securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
  terminationMessagePath: /dev/termination-log
  terminationMessagePolicy: File
  volumeMounts:
  - {name: logs, mountPath: /var/log/fdb-trace-logs}
  - {name: dynamic-conf, mountPath: /var/dynamic-conf}
  - {name: backup-credentials, mountPath: /var/backup-credentials, readOnly: true}
volumes:
- {name: logs, emptyDir: {}}
- {name: dynamic-conf, emptyDir: {}}
- {name: config-map, configMap: {name: prod-config, items: [{key: cluster-file, path: fdb.cluster}]}}
- {name: backup-credentials, secret: {secretName: store, defaultMode: 288, items: [{key: blob.json, path: credentials}]}}
`)
}

// The FoundationDB cluster and its ConfigMap may be gone.
func TestThePodThatDeletesNeedsNoCluster(t *testing.T) {
	assertPod(t, build(t, "", deleteStep()), `
restartPolicy: Never
terminationGracePeriodSeconds: 30
activeDeadlineSeconds: 4200
automountServiceAccountToken: false
securityContext: `+security+`
containers:
- name: foundationdb
  image: foundationdb/foundationdb:7.3.63
  command: [/bin/bash, -c, SCRIPT, holdfast]
  args: [delete, "blobstore://lab@s3.local/a?bucket=fdb-backups", "blobstore://lab@s3.local/b?bucket=fdb-backups"]
  env:
  - {name: FDB_BLOB_CREDENTIALS, value: /var/backup-credentials/credentials}
  - {name: FDB_ZONE_ID, value: nightly}
  - {name: FDB_MACHINE_ID, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: HOLDFAST_RESULT, value: /dev/termination-log}
  - {name: HOLDFAST_DESCRIBE_SECONDS, value: "1200"}
  - {name: TMPDIR, value: /var/dynamic-conf}
  - {name: TZ, value: UTC}
  resources: {requests: {cpu: 100m, memory: 512Mi}, limits: {cpu: "1", memory: 2Gi}}
  securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
  terminationMessagePath: /dev/termination-log
  terminationMessagePolicy: File
  volumeMounts:
  - {name: logs, mountPath: /var/log/fdb-trace-logs}
  - {name: dynamic-conf, mountPath: /var/dynamic-conf}
  - {name: backup-credentials, mountPath: /var/backup-credentials, readOnly: true}
volumes:
- {name: logs, emptyDir: {}}
- {name: dynamic-conf, emptyDir: {}}
- {name: backup-credentials, secret: {secretName: store, defaultMode: 288, items: [{key: blob.json, path: credentials}]}}
`)
}

func assertPod(t *testing.T, pod *corev1.Pod, want string) {
	t.Helper()
	expected, err := yaml.YAMLToJSON([]byte(want))
	require.NoError(t, err)
	spec := pod.Spec.DeepCopy()
	spec.Containers[0].Command[2] = "SCRIPT"
	got, err := json.Marshal(spec)
	require.NoError(t, err)
	assert.JSONEq(t, string(expected), string(got))
	if t.Failed() {
		t.Log(string(got))
	}
}

func TestWhosePodItIs(t *testing.T) {
	pod := build(t, `{"metadata":{"labels":{"app":"x","fdb.holdfast.dev/expiry":"other","fdb.holdfast.dev/expiry-turn":"1"},`+
		`"annotations":{"sidecar.istio.io/inject":"false"}}}`, expireStep())
	assert.Equal(t, map[string]string{
		"app": "x", fdbv1alpha1.LabelExpiry: "nightly", fdbv1alpha1.LabelTurn: "1795000000", fdbv1alpha1.LabelJob: "expire",
		"velero.io/exclude-from-backup": "true",
	}, pod.Labels, "without the label by which the agents' Deployment adopts pods")
	assert.Equal(t, map[string]string{"sidecar.istio.io/inject": "false"}, pod.Annotations)
	assert.Equal(t, []metav1.OwnerReference{{
		APIVersion: "fdb.holdfast.dev/v1alpha1", Kind: "FoundationDBBackup", Name: "nightly", UID: "uid-1", Controller: new(true),
	}}, pod.OwnerReferences)
	assert.Equal(t, "team-a", pod.Namespace)
	assert.True(t, jobs.Ours(pod, ref))
	assert.Equal(t, "delete", build(t, "", deleteStep()).Labels[fdbv1alpha1.LabelJob])

	assert.False(t, jobs.Ours(pod, contract.ObjectRef{Namespace: "team-a", Name: "nightly", UID: "uid-2"}), "another object of the name")
	assert.False(t, jobs.Ours(pod, contract.ObjectRef{Namespace: "team-a", Name: "nightly"}))
	orphan := pod.DeepCopy()
	orphan.OwnerReferences = nil
	assert.False(t, jobs.Ours(orphan, ref))
	agent := pod.DeepCopy()
	agent.Labels = map[string]string{fdbv1alpha1.LabelBackup: "nightly"}
	assert.False(t, jobs.Ours(agent, ref))
}

func TestThePodIsMadeFromTheUsersTemplate(t *testing.T) {
	pod := build(t, `{"spec":{
		"serviceAccountName":"backups","imagePullSecrets":[{"name":"registry"}],"nodeSelector":{"disk":"big"},
		"tolerations":[{"key":"dedicated","operator":"Exists"}],"priorityClassName":"low","runtimeClassName":"gvisor",
		"securityContext":{},"terminationGracePeriodSeconds":900,"restartPolicy":"Always","activeDeadlineSeconds":5,
		"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}],
		"affinity":{
			"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"gpu","operator":"DoesNotExist"}]}]}},
			"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname","labelSelector":{}}]}},
		"volumes":[{"name":"tls","secret":{"secretName":"fdb-tls"}}],
		"initContainers":[{"name":"certificates","image":"certs:1","volumeMounts":[{"name":"config-map","mountPath":"/in"},{"name":"tls","mountPath":"/out"}]}],
		"containers":[
			{"name":"shipper","image":"logs:1"},
			{"name":"foundationdb","image":"mirror.local/fdb","command":["own"],"args":["own"],"workingDir":"/nowhere","tty":true,"stdin":true,
			 "terminationMessagePath":"/elsewhere","terminationMessagePolicy":"FallbackToLogsOnError",
			 "resources":{"limits":{"memory":"4Gi"}},"ports":[{"containerPort":1,"hostPort":1}],
			 "livenessProbe":{"exec":{"command":["true"]}},"readinessProbe":{"exec":{"command":["true"]}},
			 "startupProbe":{"exec":{"command":["true"]}},"lifecycle":{"preStop":{"exec":{"command":["true"]}}},
			 "envFrom":[{"configMapRef":{"name":"proxy"}}],
			 "env":[{"name":"FDB_TLS_CERTIFICATE_FILE","value":"/tls/tls.crt"},{"name":"TZ","value":"CET"},{"name":"HOLDFAST_RESULT","value":"/x"}],
			 "volumeMounts":[{"name":"tls","mountPath":"/tls"}]}]}}`, deleteStep())
	spec := pod.Spec
	assert.Equal(t, "backups", spec.ServiceAccountName)
	assert.Equal(t, []corev1.LocalObjectReference{{Name: "registry"}}, spec.ImagePullSecrets)
	assert.Equal(t, map[string]string{"disk": "big"}, spec.NodeSelector)
	assert.Equal(t, []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}, spec.Tolerations)
	assert.Equal(t, "low", spec.PriorityClassName)
	assert.Equal(t, new("gvisor"), spec.RuntimeClassName)
	assert.Equal(t, &corev1.PodSecurityContext{}, spec.SecurityContext, "as OpenShift wants it")
	assert.NotNil(t, spec.Affinity.NodeAffinity)
	assert.Nil(t, spec.Affinity.PodAntiAffinity, "agents may be on every node")
	assert.Empty(t, spec.TopologySpreadConstraints)
	assert.Equal(t, corev1.RestartPolicyNever, spec.RestartPolicy)
	assert.EqualValues(t, 70*60, *spec.ActiveDeadlineSeconds, "should nobody be there to cut it")
	assert.Equal(t, new(int64(30)), spec.TerminationGracePeriodSeconds)
	assert.Contains(t, spec.Volumes, corev1.Volume{Name: "tls", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "fdb-tls"},
	}})

	require.Len(t, spec.Containers, 1, "a sidecar would never end")
	main := spec.Containers[0]
	assert.Equal(t, "mirror.local/fdb:7.3.63", main.Image)
	assert.Equal(t, "/bin/bash", main.Command[0])
	assert.Equal(t, "delete", main.Args[0])
	assert.Empty(t, main.WorkingDir)
	assert.False(t, main.TTY || main.Stdin)
	assert.Equal(t, "/dev/termination-log", main.TerminationMessagePath)
	assert.Equal(t, corev1.TerminationMessageReadFile, main.TerminationMessagePolicy)
	assert.Equal(t, "4Gi", main.Resources.Limits.Memory().String())
	assert.Empty(t, main.Resources.Requests.Memory().Value(), "ours could be above the user's limit")
	assert.Equal(t, "100m", main.Resources.Requests.Cpu().String())
	assert.Nil(t, main.LivenessProbe)
	assert.Nil(t, main.ReadinessProbe)
	assert.Nil(t, main.StartupProbe)
	assert.Nil(t, main.Lifecycle)
	assert.Empty(t, main.Ports)
	assert.Len(t, main.EnvFrom, 1)
	env := map[string]string{}
	for _, v := range main.Env {
		assert.NotContains(t, env, v.Name, "twice")
		env[v.Name] = v.Value
	}
	assert.Equal(t, "/tls/tls.crt", env["FDB_TLS_CERTIFICATE_FILE"])
	assert.Equal(t, "UTC", env["TZ"])
	assert.Equal(t, "/dev/termination-log", env["HOLDFAST_RESULT"])
	assert.Contains(t, main.VolumeMounts, corev1.VolumeMount{Name: "tls", MountPath: "/tls"})

	require.Len(t, spec.InitContainers, 1)
	assert.Equal(t, "certificates", spec.InitContainers[0].Name)
	assert.Equal(t, []corev1.VolumeMount{{Name: "tls", MountPath: "/out"}}, spec.InitContainers[0].VolumeMounts,
		"there is no ConfigMap of the cluster")
}

func TestPodsThatCannotBeMade(t *testing.T) {
	both := expireStep()
	both.Delete = []contract.FDBPlace{place("b")}
	for title, test := range map[string]struct {
		template, version string
		step              contract.FDBPodStep
		says              string
	}{
		"neither job":    {"", version, contract.FDBPodStep{Ref: ref, Turn: began, Number: 1}, "either expires"},
		"both jobs":      {"", version, both, "either expires"},
		"no version":     {"", "", deleteStep(), `"" is not a version`},
		"evil version":   {"", "evil/image:7.3.63", deleteStep(), "is not a version"},
		"a bad template": {`{"x":1}`, version, deleteStep(), `unknown field "x"`},
	} {
		_, err := jobs.Pod(backup(test.template), test.version, test.step, time.Hour)
		require.ErrorContains(t, err, test.says, title)
		var template *agents.TemplateError
		assert.Equal(t, test.template != "", assert.ErrorAs(&testing.T{}, err, &template), title)
	}
}

func TestNamesOfPods(t *testing.T) {
	long := ref
	long.Name = strings.Repeat("a", 44) + "." + strings.Repeat("b", 18)
	seen := map[string]bool{}
	for _, step := range []contract.FDBPodStep{
		{Ref: ref, Turn: 1, Number: 1},
		{Ref: ref, Turn: 1, Number: 2},
		{Ref: ref, Turn: 2, Number: 1},
		{Ref: long, Turn: 1, Number: 1},
		{Ref: contract.ObjectRef{Name: "nightly", UID: "uid-2"}, Turn: 1, Number: 1},
		{Ref: ref, Turn: 11, Number: 1},
	} {
		name := jobs.NameOf(step)
		assert.Equal(t, name, jobs.NameOf(step))
		assert.Empty(t, validation.IsDNS1123Subdomain(name), name)
		assert.LessOrEqual(t, len(name), 63)
		assert.Contains(t, name, "-expiry-")
		assert.False(t, seen[name], name)
		seen[name] = true
	}
	assert.Regexp(t, `^a{44}-expiry-`, jobs.NameOf(contract.FDBPodStep{Ref: long, Turn: 1, Number: 1}), "a dot must not stand there")
	assert.Equal(t, "before", jobs.NameOf(contract.FDBPodStep{Ref: ref, Turn: 1, Name: "before"}))
}

// Kubernetes replaces $(NAME) by its value, and two dollar signs by one, in commands and arguments.
func TestKubernetesLeavesTheScriptAndTheArgumentsAlone(t *testing.T) {
	step := deleteStep()
	step.Delete[0].URL = "blobstore://a$$b$HOME@s3.local/a?bucket=fdb-backups"
	main := build(t, "", step).Spec.Containers[0]
	assert.Equal(t, "blobstore://a$$$$b$$HOME@s3.local/a?bucket=fdb-backups", main.Args[1])
	assert.NotRegexp(t, `\$\$|\$\([A-Za-z0-9_.-]*\)`, main.Command[2])
}
