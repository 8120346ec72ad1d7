package agents_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/activities/fdb/agents"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
)

// The whole Deployment, as FoundationDB's operator makes it.
func TestTheAgentsOfAPlainBackup(t *testing.T) {
	want := `
replicas: 2
selector: {matchLabels: {fdb.holdfast.dev/backup: nightly}}
strategy: {}
template:
  metadata:
    labels: {fdb.holdfast.dev/backup: nightly, velero.io/exclude-from-backup: "true"}
  spec:
    automountServiceAccountToken: false
    securityContext:
      {runAsNonRoot: true, runAsUser: 4059, runAsGroup: 4059, fsGroup: 4059, seccompProfile: {type: RuntimeDefault}}
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
      command: [backup_agent]
      args:
      - --log
      - --logdir
      - /var/log/fdb-trace-logs
      - --locality_zoneid=$(FDB_ZONE_ID)
      - --locality_machineid=$(FDB_MACHINE_ID)
      env:
      - {name: FDB_CLUSTER_FILE, value: /var/dynamic-conf/fdb.cluster}
      - {name: FDB_BLOB_CREDENTIALS, value: /var/backup-credentials/credentials}
      - {name: FDB_ZONE_ID, value: nightly}
      - {name: FDB_MACHINE_ID, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
      resources: {requests: {cpu: "1", memory: 8Gi}, limits: {cpu: "1", memory: 8Gi}}
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
      volumeMounts:
      - {name: logs, mountPath: /var/log/fdb-trace-logs}
      - {name: dynamic-conf, mountPath: /var/dynamic-conf}
      - {name: backup-credentials, mountPath: /var/backup-credentials, readOnly: true}
    volumes:
    - {name: logs, emptyDir: {}}
    - {name: dynamic-conf, emptyDir: {}}
    - {name: config-map, configMap: {name: prod-config, items: [{key: cluster-file, path: fdb.cluster}]}}
    - {name: backup-credentials, secret: {secretName: store, defaultMode: 288, items: [{key: blob.json, path: credentials}]}}
`
	content, err := yaml.YAMLToJSON([]byte(want))
	require.NoError(t, err)
	deployment := build(t, backup(""))
	assert.JSONEq(t, string(content), asJSON(t, deployment.Spec))
	assert.Equal(t, "nightly", deployment.Name)
	assert.Equal(t, "team-a", deployment.Namespace)
	assert.Equal(t, map[string]string{fdbv1alpha1.LabelBackup: "nightly", "velero.io/exclude-from-backup": "true"}, deployment.Labels)
	assert.Equal(t, []metav1.OwnerReference{{
		APIVersion: "fdb.holdfast.dev/v1alpha1", Kind: "FoundationDBBackup", Name: "nightly", UID: "uid-1",
		Controller: new(true),
	}}, deployment.OwnerReferences)
	assert.Regexp(t, `^[0-9a-f]{64}$`, deployment.Annotations[fdbv1alpha1.AnnotationAgentsHash])
}

func TestDefaultsOfAnObjectThatWasStoredWithoutThem(t *testing.T) {
	object := backup("")
	object.Spec.ClusterName, object.Spec.Credentials.Key, object.Spec.AgentCount, object.Spec.BackupType = "", "", nil, ""
	deployment := build(t, object)
	assert.Equal(t, new(int32(3)), deployment.Spec.Replicas)
	volumes := deployment.Spec.Template.Spec.Volumes
	assert.Equal(t, "nightly-config", volumes[2].ConfigMap.Name)
	assert.Equal(t, "credentials", volumes[3].Secret.Items[0].Key)
}

func TestNoAgentsAreADeploymentWithoutPods(t *testing.T) {
	object := backup("")
	object.Spec.AgentCount = new(int32(0))
	assert.Equal(t, new(int32(0)), build(t, object).Spec.Replicas)
}

// The version is a part of the images' names.
func TestVersions(t *testing.T) {
	for good, tag := range map[string]string{"7.1.67": "7.1.67", "7.4.6-rc1": "7.4.6-rc1", "10.0.0": "10.0.0"} {
		deployment, err := agents.Deployment(backup(""), good)
		require.NoError(t, err, good)
		assert.Equal(t, "foundationdb/foundationdb:"+tag, deployment.Spec.Template.Spec.Containers[0].Image)
	}
	for _, bad := range []string{"", "7", "7.3", "latest", "7.3.63@sha256:1", "7.3.63 ", "7.3.63\n", "evil/image:7.3.63", "7.3.63-"} {
		_, err := agents.Deployment(backup(""), bad)
		require.ErrorContains(t, err, "is not a version of FoundationDB", bad)
	}
}

func TestAnUnknownBackupTypeHasNoAgents(t *testing.T) {
	object := backup("")
	object.Spec.BackupType = "partitioned_log"
	_, err := agents.Deployment(object, version)
	require.ErrorContains(t, err, `no backup type "partitioned_log"`)
}

// The hash changes with everything that the agents are made of, and with nothing else.
func TestTheHashDiffersBetweenSpecs(t *testing.T) {
	hash := func(object *fdbv1alpha1.FoundationDBBackup, version string) string {
		deployment, err := agents.Deployment(object, version)
		require.NoError(t, err)
		return deployment.Annotations[fdbv1alpha1.AnnotationAgentsHash]
	}
	plain := hash(backup(""), version)
	seen := map[string]string{plain: "plain"}
	for title, object := range map[string]*fdbv1alpha1.FoundationDBBackup{
		"template": backup(`{"spec":{"nodeSelector":{"a":"b"}}}`),
		"label":    backup(`{"metadata":{"labels":{"a":"b"}}}`),
		"count":    func() *fdbv1alpha1.FoundationDBBackup { o := backup(""); o.Spec.AgentCount = new(int32(0)); return o }(),
		"cluster":  func() *fdbv1alpha1.FoundationDBBackup { o := backup(""); o.Spec.ClusterName = "x"; return o }(),
		"secret":   func() *fdbv1alpha1.FoundationDBBackup { o := backup(""); o.Spec.Credentials.SecretName = "x"; return o }(),
		"key":      func() *fdbv1alpha1.FoundationDBBackup { o := backup(""); o.Spec.Credentials.Key = "x"; return o }(),
	} {
		got := hash(object, version)
		assert.Empty(t, seen[got], title)
		seen[got] = title
	}
	assert.NotEqual(t, plain, hash(backup(""), "7.3.64"))

	same := backup(`{}`)
	same.Spec.Tag, same.Spec.SnapshotPeriodSeconds, same.Labels = "x", 1, map[string]string{"a": "b"}
	assert.Equal(t, plain, hash(same, version))
}

func TestMergeCorrectsWhatIsOursAndLeavesTheRest(t *testing.T) {
	wanted := build(t, backup(""))
	existing := wanted.DeepCopy()
	existing.ResourceVersion = "7"
	existing.Labels = map[string]string{fdbv1alpha1.LabelBackup: "other", "theirs": "stays"}
	existing.Annotations = map[string]string{"deployment.kubernetes.io/revision": "4", fdbv1alpha1.AnnotationAgentsHash: "old"}
	existing.Spec.Replicas = new(int32(9))
	existing.Spec.Paused = true
	existing.Spec.RevisionHistoryLimit = new(int32(1))
	existing.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now", "old": "goes"}
	existing.Spec.Template.Spec.NodeSelector = map[string]string{"gone": "true"}
	existing.Spec.Template.Spec.Containers = append(existing.Spec.Template.Spec.Containers, corev1.Container{Name: "more"})
	before := existing.DeepCopy()

	merged, err := agents.Merge(existing, wanted)
	require.NoError(t, err)
	assert.Equal(t, before, existing, "it is a copy")
	want := wanted.DeepCopy()
	want.ResourceVersion = "7"
	want.Labels["theirs"] = "stays"
	want.Annotations["deployment.kubernetes.io/revision"] = "4"
	want.Spec.RevisionHistoryLimit = new(int32(1))
	want.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
	assert.Equal(t, want, merged)

	merged.Spec.Template.Labels["x"], *merged.Spec.Replicas = "y", 77
	assert.Equal(t, int32(2), *wanted.Spec.Replicas)
	assert.NotContains(t, wanted.Spec.Template.Labels, "x")
}

func TestMergeRefusesAnotherSelector(t *testing.T) {
	wanted := build(t, backup(""))
	for title, selector := range map[string]*metav1.LabelSelector{
		"another value": {MatchLabels: map[string]string{fdbv1alpha1.LabelBackup: "other"}},
		"more labels":   {MatchLabels: map[string]string{fdbv1alpha1.LabelBackup: "nightly", "a": "b"}},
		"none":          nil,
	} {
		t.Run(title, func(t *testing.T) {
			existing := wanted.DeepCopy()
			existing.Spec.Selector = selector
			_, err := agents.Merge(existing, wanted)
			require.EqualError(t, err, "the selector of Deployment nightly differs and cannot be changed: delete the Deployment")
		})
	}
}
