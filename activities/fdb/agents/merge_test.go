package agents_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"holdfast.dev/holdfast/activities/fdb/agents"
)

func TestATemplateChangesWhatItNames(t *testing.T) {
	pod := podOf(t, `{
		"metadata":{"labels":{"team":"a"},"annotations":{"a":"b"},"creationTimestamp":null},
		"spec":{
			"nodeSelector":{"disk":"ssd"},"serviceAccountName":"agents","automountServiceAccountToken":true,
			"securityContext":{"fsGroup":1000},
			"tolerations":[{"key":"a","operator":"Exists"}],
			"volumes":[{"name":"more","secret":{"secretName":"tls"}},{"name":"logs","hostPath":{"path":"/var/log"}}],
			"initContainers":[{"name":"warm","image":"w:1"}],
			"containers":[
				{"name":"shipper","image":"s:1"},
				{"name":"foundationdb","image":"registry:5000/fdb:custom","imagePullPolicy":"Always",
				 "env":[{"name":"FDB_ZONE_ID","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}},{"name":"MORE","value":"1"}],
				 "resources":{"limits":{"cpu":"500m"}},
				 "securityContext":{"readOnlyRootFilesystem":true},
				 "volumeMounts":[{"name":"more","mountPath":"/tls"}]}]}}`)
	main := container(t, pod.Containers, agents.MainContainer)
	assert.Equal(t, "registry:5000/fdb:custom", main.Image)
	assert.Equal(t, corev1.PullAlways, main.ImagePullPolicy)
	assert.Equal(t, []string{"backup_agent"}, main.Command)
	env := environment(main)
	assert.Len(t, env, 5)
	assert.Equal(t, "1", env["MORE"].Value)
	assert.Equal(t, corev1.EnvVar{Name: "FDB_ZONE_ID", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"},
	}}, env["FDB_ZONE_ID"], "value and valueFrom together would be refused")
	assert.Equal(t, "/var/dynamic-conf/fdb.cluster", env["FDB_CLUSTER_FILE"].Value)
	assert.Equal(t, corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Gi")},
		Limits: corev1.ResourceList{
			corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourceCPU: resource.MustParse("500m"),
		},
	}, main.Resources, "a request of 1 CPU would be above the limit")
	assert.Equal(t, new(true), main.SecurityContext.ReadOnlyRootFilesystem)
	assert.Equal(t, new(false), main.SecurityContext.AllowPrivilegeEscalation)
	assert.Len(t, main.VolumeMounts, 4)

	assert.Len(t, pod.Containers, 2)
	assert.Len(t, pod.InitContainers, 2)
	container(t, pod.Containers, "shipper")
	container(t, pod.InitContainers, "warm")
	container(t, pod.InitContainers, agents.InitContainer)
	assert.Equal(t, map[string]string{"disk": "ssd"}, pod.NodeSelector)
	assert.Equal(t, "agents", pod.ServiceAccountName)
	assert.Equal(t, new(true), pod.AutomountServiceAccountToken)
	assert.Equal(t, &corev1.PodSecurityContext{FSGroup: new(int64(1000))}, pod.SecurityContext, "as a whole")
	volumes := map[string]corev1.VolumeSource{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = v.VolumeSource
	}
	assert.Len(t, volumes, 5)
	assert.Equal(t, corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/log"}}, volumes["logs"])

	template := build(t, backup(`{"metadata":{"labels":{"team":"a"},"annotations":{"a":"b"}}}`)).Spec.Template
	assert.Equal(t, map[string]string{
		"team": "a", "fdb.holdfast.dev/backup": "nightly", "velero.io/exclude-from-backup": "true",
	}, template.Labels)
	assert.Equal(t, map[string]string{"a": "b"}, template.Annotations)
}

func TestAnEmptyTemplateChangesNothing(t *testing.T) {
	for _, template := range []string{`{}`, `null`, ` `, `{"metadata":{},"spec":{}}`, `{"spec":{"containers":[{"name":"foundationdb"}]}}`} {
		assert.Equal(t, build(t, backup("")), build(t, backup(template)), template)
	}
}

// As OpenShift needs it, which chooses user and group itself.
func TestUsersAndGroupsCanBeLeftToThePlatform(t *testing.T) {
	assert.Equal(t, &corev1.PodSecurityContext{}, podOf(t, `{"spec":{"securityContext":{}}}`).SecurityContext)
	assert.Equal(t, new(int64(4059)), podOf(t, `{"spec":{}}`).SecurityContext.RunAsUser)
}

// A variable may refer only to earlier ones, and kubectl uses the first container.
func TestOurElementsComeBeforeTheUsers(t *testing.T) {
	pod := podOf(t, `{"spec":{"initContainers":[{"name":"first","image":"x"},{"name":"foundationdb-kubernetes-init"},{"name":"last","image":"x"}],
		"containers":[{"name":"shipper","image":"s:1"},{"name":"foundationdb","env":[
			{"name":"NODE","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}},{"name":"FDB_ZONE_ID","value":"$(NODE)"},
			{"name":"SELF","value":"$(FDB_MACHINE_ID)"}]}]}}`)
	names := func(containers []corev1.Container) (all []string) {
		for _, c := range containers {
			all = append(all, c.Name)
		}
		return all
	}
	assert.Equal(t, []string{"foundationdb", "shipper"}, names(pod.Containers))
	assert.Equal(t, []string{"first", "foundationdb-kubernetes-init", "last"}, names(pod.InitContainers), "as the user has them")
	var variables []string
	for _, v := range pod.Containers[0].Env {
		variables = append(variables, v.Name)
	}
	assert.Equal(t, []string{
		"FDB_CLUSTER_FILE", "FDB_BLOB_CREDENTIALS", "FDB_MACHINE_ID", "NODE", "FDB_ZONE_ID", "SELF",
	}, variables)
}

// An image without a tag follows the cluster's version.
func TestImages(t *testing.T) {
	tests := map[string]struct{ main, initial string }{
		"registry/foundationdb":              {"registry/foundationdb:7.3.63", "registry/foundationdb:7.3.63-1"},
		"registry:5000/foundationdb":         {"registry:5000/foundationdb:7.3.63", "registry:5000/foundationdb:7.3.63-1"},
		"foundationdb":                       {"foundationdb:7.3.63", "foundationdb:7.3.63-1"},
		"registry:5000/foundationdb:7.1.0":   {"registry:5000/foundationdb:7.1.0", "registry:5000/foundationdb:7.1.0"},
		"foundationdb@sha256:0123456789abcd": {"foundationdb@sha256:0123456789abcd", "foundationdb@sha256:0123456789abcd"},
	}
	for image, want := range tests {
		t.Run(image, func(t *testing.T) {
			pod := podOf(t, `{"spec":{"containers":[{"name":"foundationdb","image":"`+image+`"},{"name":"more","image":"more"}],`+
				`"initContainers":[{"name":"foundationdb-kubernetes-init","image":"`+image+`"}]}}`)
			assert.Equal(t, want.main, container(t, pod.Containers, agents.MainContainer).Image)
			assert.Equal(t, want.initial, container(t, pod.InitContainers, agents.InitContainer).Image)
			assert.Equal(t, "more", container(t, pod.Containers, "more").Image, "no version of FoundationDB's")
		})
	}
}

// Our files come first: FoundationDB reads an account from the first file that has it.
func TestCredentialsOfThisBackupComeFirst(t *testing.T) {
	const ours = "/var/backup-credentials/credentials"
	for theirs, want := range map[string]string{
		"":                          ours,
		"/a/b":                      ours + ":/a/b",
		"/a/b:/c":                   ours + ":/a/b:/c",
		"/a/b:" + ours + ":/c:/a/b": ours + ":/a/b:/c",
		ours:                        ours,
	} {
		pod := podOf(t, inMain(`"env":[{"name":"FDB_BLOB_CREDENTIALS","value":"`+theirs+`"}]`))
		assert.Equal(t, want, environment(pod.Containers[0])["FDB_BLOB_CREDENTIALS"].Value, theirs)
	}
}

func TestTemplatesThatAreRefused(t *testing.T) {
	tests := map[string]struct{ template, want string }{
		"an unknown field": {
			`{"spec":{"containers":[{"name":"foundationdb","imag":"x"}]}}`, `is not a pod template: unknown field "spec.containers[0].imag"`,
		},
		"a field in another case": {`{"spec":{"NodeSelector":{}}}`, `unknown field "spec.NodeSelector"`},
		"a field twice":           {`{"spec":{"nodeName":"a","nodeName":"b"}}`, `duplicate field "spec.nodeName"`},
		"a directive of kubectl":  {inMain(`"$patch":"replace"`), `unknown field "spec.containers[0].$patch"`},
		"another kind":            {`{"apiVersion":"v1","kind":"Pod"}`, `unknown field "apiVersion"`},
		"a wrong type":            {`{"spec":{"containers":"a"}}`, "is not a pod template: json: cannot unmarshal string"},
		"a wrong quantity":        {inMain(`"resources":{"limits":{"cpu":"a lot"}}`), "is not a pod template: quantities must match"},
		"no object":               {`[]`, "is not a pod template: json: cannot unmarshal array"},
		"a name":                  {`{"metadata":{"name":"a"}}`, "may have only labels and annotations in its metadata"},
		"a namespace":             {`{"metadata":{"namespace":"kube-system"}}`, "may have only labels and annotations in its metadata"},
		"an owner":                {`{"metadata":{"ownerReferences":[]}}`, "may have only labels and annotations in its metadata"},
		"our label": {
			`{"metadata":{"labels":{"fdb.holdfast.dev/backup":"x"}}}`, "must not change or remove label fdb.holdfast.dev/backup",
		},
		"our label away":          {`{"metadata":{"labels":null}}`, "must not change or remove label fdb.holdfast.dev/backup"},
		"no pod":                  {`{"spec":null}`, "must not remove container foundationdb, which runs the agent"},
		"no containers":           {`{"spec":{"containers":null}}`, "must not remove container foundationdb, which runs the agent"},
		"no init containers":      {`{"spec":{"initContainers":null}}`, "must not remove init container foundationdb-kubernetes-init"},
		"a sidecar without image": {`{"spec":{"containers":[{"name":"shipper"}]}}`, `must name the image of container "shipper"`},
		"our image away":          {inMain(`"image":""`), `must name the image of container "foundationdb"`},
		"a container without a name": {
			`{"spec":{"containers":[{"image":"x","env":[{"name":"PASSWORD","value":"hunter2"}]}]}}`,
			"cannot be merged: each of its containers, variables and volumes must have a name",
		},
		"no volumes":             {`{"spec":{"volumes":null}}`, "must not change or remove volume dynamic-conf"},
		"another cluster's file": {`{"spec":{"volumes":[{"name":"config-map","configMap":{"name":"other-config"}}]}}`, "must not change or remove volume config-map: give yours another name"},
		"other credentials":      {`{"spec":{"volumes":[{"name":"backup-credentials","secret":{"secretName":"other"}}]}}`, "must not change or remove volume backup-credentials"},
		"a mount over ours": {
			inMain(`"volumeMounts":[{"name":"logs","mountPath":"/var/dynamic-conf"}]`),
			"must not change or remove the mount of volume dynamic-conf at /var/dynamic-conf in container foundationdb",
		},
		"no mounts":            {inMain(`"volumeMounts":null`), "must not change or remove the mount of volume dynamic-conf"},
		"another cluster":      {inMain(`"env":[{"name":"FDB_CLUSTER_FILE","value":"/x"}]`), "must not change or remove FDB_CLUSTER_FILE in container foundationdb"},
		"a cluster from afar":  {inMain(`"env":[{"name":"FDB_CLUSTER_FILE","valueFrom":{"configMapKeyRef":{"name":"a","key":"b"}}}]`), "must not change or remove FDB_CLUSTER_FILE"},
		"no environment":       {inMain(`"env":null`), "must not change or remove FDB_CLUSTER_FILE"},
		"credentials by name":  {inMain(`"env":[{"name":"FDB_BLOB_CREDENTIALS","valueFrom":{"configMapKeyRef":{"name":"a","key":"b"}}}]`), "must give FDB_BLOB_CREDENTIALS in container foundationdb as a value"},
		"a mount of the init":  {`{"spec":{"initContainers":[{"name":"foundationdb-kubernetes-init","volumeMounts":null}]}}`, "must not change or remove the mount of volume config-map"},
		"many mistakes at one": {`{"a":1,"b":1,"c":1,"d":1}`, `unknown field "c"`},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			_, err := agents.Deployment(backup(tt.template), version)
			var invalid *agents.TemplateError
			require.ErrorAs(t, err, &invalid)
			assert.Contains(t, err.Error(), tt.want)
			assert.True(t, strings.HasPrefix(err.Error(), "spec.podTemplateSpec "), err)
			assert.NotContains(t, err.Error(), "\n")
			assert.NotContains(t, err.Error(), "hunter2")
			assert.Less(t, len(err.Error()), 1024, "an Event's note")
		})
	}
}

func TestTheMessageOfAMistakeIsShortened(t *testing.T) {
	_, err := agents.Deployment(backup(`{"`+strings.Repeat("é", 5000)+`":1}`), version)
	require.ErrorContains(t, err, "unknown field")
	assert.Less(t, len(err.Error()), 1024)
}
