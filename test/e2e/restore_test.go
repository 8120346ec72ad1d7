package e2e_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// What a tenant deletes by mistake comes back as it was.
func TestRestoreBringsBackWhatWasDeleted(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "alice")
	nab := x.awaitVeleroPhase(x.backUp("nightly"), velerov1.BackupPhaseCompleted)
	before := configMaps(t, x.namespace)
	require.NotEmpty(t, before)
	for name := range before {
		require.NoError(t, x.client.Delete(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name},
		}))
	}
	require.Empty(t, configMaps(t, x.namespace))

	nar := x.awaitFinalized(x.restore("back", nab.Name))

	assert.Equal(t, velerov1.RestorePhaseCompleted, nar.Status.VeleroRestore.Status.Phase)
	assert.Equal(t, before, configMaps(t, x.namespace))
}

// restore creates a NonAdminRestore as the tenant.
func (x *tenant) restore(name, backup string, changes ...func(*velerov1.RestoreSpec)) *oadpv1alpha1.NonAdminRestore {
	x.t.Helper()
	nar := &oadpv1alpha1.NonAdminRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name},
		Spec:       oadpv1alpha1.NonAdminRestoreSpec{RestoreSpec: &velerov1.RestoreSpec{BackupName: backup}},
	}
	for _, alter := range changes {
		alter(nar.Spec.RestoreSpec)
	}
	require.NoError(x.t, x.client.Create(x.t.Context(), nar))
	return nar
}

// awaitRestore polls until the restore is as wished and returns it.
func (x *tenant) awaitRestore(
	nar *oadpv1alpha1.NonAdminRestore, wish string, ok func(*oadpv1alpha1.NonAdminRestore) bool,
) *oadpv1alpha1.NonAdminRestore {
	x.t.Helper()
	seen := &oadpv1alpha1.NonAdminRestore{}
	require.EventuallyWithT(x.t, func(c *assert.CollectT) {
		now := &oadpv1alpha1.NonAdminRestore{}
		if !assert.NoError(c, admin.Get(context.Background(), client.ObjectKeyFromObject(nar), now)) {
			return
		}
		seen = now
		status, _ := json.Marshal(now.Status)
		assert.True(c, ok(now), "wish %q, status %s", wish, status)
	}, patience, 200*time.Millisecond, "%s/%s: %s", nar.Namespace, nar.Name, wish)
	return seen
}

// awaitFinalized waits for the end of the finalization.
func (x *tenant) awaitFinalized(nar *oadpv1alpha1.NonAdminRestore) *oadpv1alpha1.NonAdminRestore {
	x.t.Helper()
	return x.awaitRestore(nar, "finalized", func(now *oadpv1alpha1.NonAdminRestore) bool {
		return now.Status.Finalization != nil && now.Status.Finalization.Phase.Final()
	})
}

// configMaps returns the data of a namespace's ConfigMaps by their names, but for the one that Kubernetes puts there.
func configMaps(t *testing.T, namespace string) map[string]map[string]string {
	t.Helper()
	var list corev1.ConfigMapList
	require.NoError(t, admin.List(t.Context(), &list, client.InNamespace(namespace)))
	found := map[string]map[string]string{}
	for _, item := range list.Items {
		if item.Name != "kube-root-ca.crt" {
			found[item.Name] = item.Data
		}
	}
	return found
}
