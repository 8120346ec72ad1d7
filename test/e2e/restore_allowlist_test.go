package e2e_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// What may come back is the cluster's to say, so this is not parallel. A change of the policy has restores judged again.
func TestARestoreFromATenantsLocationWaitsUntilItIsKnownWhatMayComeBack(t *testing.T) {
	x, account := newTenant(t, "erin"), newAccount(t)
	location := x.own(account)
	x.awaitAvailable(location)
	nab := x.completedInto("nightly", "own")
	again := 0
	judgeAgain := func() {
		again++
		setPolicy(t, map[string]string{"holdfast": fmt.Sprintf("restoreFromTenantsLocations: {clusterRole: config-restorer} # %d", again)})
	}
	const waits = "nothing can be restored from a NonAdminBackupStorageLocation now: "

	judgeAgain()
	nar := x.restore("waits", nab.Name)
	assert.Equal(t, waits+`there is no ClusterRole "config-restorer", which the administrator's policy names`,
		x.awaitRestoreRefused(nar, oadpv1alpha1.ReasonInvalidRestoreSpec))

	restorer := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "config-restorer"}}
	require.NoError(t, admin.Create(t.Context(), restorer))
	t.Cleanup(func() { deleteAtEnd(t, restorer) })
	judgeAgain()
	assert.Equal(t, waits+`ClusterRole "config-restorer" may create nothing in a namespace that such a restore brings`,
		x.awaitRestoreRefused(nar, oadpv1alpha1.ReasonInvalidRestoreSpec, "may create nothing"))
	assert.Nil(t, veleroRestore(t, restoreID(nar)))

	silent := silentGroup(t)
	judgeAgain()
	assert.Equal(t, waits+"the API server does not say what it serves in silent.example.com/v1",
		x.awaitRestoreRefused(nar, oadpv1alpha1.ReasonInvalidRestoreSpec, "silent.example.com"))

	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Name: "holdfast-restores"}, binding))
	require.NoError(t, admin.Delete(t.Context(), binding))
	t.Cleanup(func() { enforceRestores(t, binding) })
	awaitJudge(t, false)
	judgeAgain()
	assert.Equal(t, waits+"ValidatingAdmissionPolicy holdfast-restores is not in force; ask an administrator to install it "+
		"(deploy/rbac/restores.yaml)", x.awaitRestoreRefused(nar, oadpv1alpha1.ReasonInvalidRestoreSpec, "not in force"))

	// The last thing that it waits for comes last: events of the location have it judged again, too.
	restorer.Rules = []rbacv1.PolicyRule{{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}}
	require.NoError(t, admin.Update(t.Context(), restorer))
	require.NoError(t, admin.Delete(t.Context(), silent))
	awaitDiscovery(t, true)
	enforceRestores(t, binding)
	awaitJudge(t, true)
	judgeAgain()
	nar = x.awaitFinalized(nar)
	assert.Equal(t, []string{"configmaps"}, veleroRestore(t, restoreID(nar)).Spec.IncludedResources)
	only := x.restore("secrets", nab.Name, func(spec *velerov1.RestoreSpec) {
		spec.IncludedResources = []string{"secrets"}
	})
	assert.Equal(t, "NonAdminRestore spec.restoreSpec selects nothing that can be restored from a NonAdminBackupStorageLocation: "+
		`only what ClusterRole "config-restorer" may create in a namespace is`, x.awaitRestoreRefused(only, oadpv1alpha1.ReasonInvalidRestoreSpec))
	recordRestore(t, nar)
	x.remove(location)
}

// silentGroup has the API server serve a group that does not answer.
func silentGroup(t *testing.T) client.Object {
	t.Helper()
	service := &unstructured.Unstructured{}
	require.NoError(t, service.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService",
		"metadata":{"name":"v1.silent.example.com"},"spec":{"group":"silent.example.com","version":"v1","groupPriorityMinimum":100,
		"versionPriority":100,"insecureSkipTLSVerify":true,"service":{"namespace":%q,"name":"silent"}}}`, env.OADPNamespace)))
	require.NoError(t, admin.Create(t.Context(), service))
	t.Cleanup(func() { deleteAtEnd(t, service) })
	awaitDiscovery(t, false)
	return service
}

// awaitDiscovery waits until the API server says of all groups what it serves, or not of all.
func awaitDiscovery(t *testing.T, whole bool) {
	t.Helper()
	config, err := stack.RESTConfig(env.Admin)
	require.NoError(t, err)
	asking, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	awaitSuccess(t, func(context.Context) error {
		_, _, err := asking.ServerGroupsAndResources()
		switch {
		case whole:
			return err
		case !discovery.IsGroupDiscoveryFailedError(err):
			return fmt.Errorf("no group is silent: %w", err)
		}
		return nil
	})
}

func enforceRestores(t *testing.T, binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	again := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: binding.Name}, Spec: binding.Spec}
	require.NoError(t, client.IgnoreAlreadyExists(admin.Create(context.Background(), again)))
}

// awaitJudge waits until the API server, which reads policies some time after they are written, refuses what it should, or nothing.
func awaitJudge(t *testing.T, refuses bool) {
	t.Helper()
	velero, err := stack.UserClient("velero")
	require.NoError(t, err)
	awaitSuccess(t, func(ctx context.Context) error {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "probe",
			Labels: map[string]string{"velero.io/restore-name": "probe"},
			Annotations: map[string]string{
				"holdfast.dev/restored-into": "elsewhere", "holdfast.dev/restored-by": env.OADPNamespace + "/probe",
			},
		}}
		err := velero.Create(ctx, probe, client.DryRunAll)
		switch {
		case !refuses:
			return err
		case !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err):
			return fmt.Errorf("it is not refused: %w", err)
		}
		return nil
	})
}
