package fdb_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
)

const trusting = `{"spec":{
	"volumes":[{"name":"authorities","configMap":{"name":"authorities"}}],
	"containers":[{"name":"foundationdb",
		"env":[{"name":"FDB_TLS_CA_FILE","value":"/authorities/ca.pem"}],
		"volumeMounts":[{"name":"authorities","mountPath":"/authorities"}]}]}}`

// What the pod template gives the agents for TLS, the tools that the worker runs get too; a template that is none is said to be.
func TestThePodTemplate(t *testing.T) {
	t.Parallel()
	x := newTenant(t)
	database := x.cluster("secure")
	require.NoError(t, x.client.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "authorities"}, Data: map[string]string{"ca.pem": "-----BEGIN"},
	}))
	backup := x.backUp("secure", func(spec *fdbv1alpha1.FoundationDBBackupSpec) {
		spec.PodTemplateSpec = &runtime.RawExtension{Raw: []byte(trusting)}
	})
	x.await(backup, "reconciled", reconciled)
	calls, err := sim.CallsOf(database, "fdbbackup", "start")
	require.NoError(t, err)
	require.Len(t, calls, 1)
	assert.Contains(t, calls[0].Env, "FDB_TLS_CA_FILE")
	assert.NotContains(t, calls[0].Env, "TEMPORAL_ADDRESS", "nothing of the worker's environment")

	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) {
		spec.PodTemplateSpec = &runtime.RawExtension{Raw: []byte(`{"spec":{"containerz":[]}}`)}
	})
	invalid := x.await(backup, "no template", has(fdbv1alpha1.ConditionIncorrectDeployment, fdbv1alpha1.ReasonTemplateInvalid))
	assert.Contains(t, invalid.Status.Conditions[0].Message, "containerz")
	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.PodTemplateSpec = nil })
	x.await(backup, "reconciled", reconciled)
}
