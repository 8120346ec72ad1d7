package velero

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/operator/operatortest"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func ended(phase velerov1.BackupPhase, ago time.Duration) velerov1.BackupStatus {
	begin := metav1.NewTime(noon.Add(-ago))
	return velerov1.BackupStatus{Phase: phase, StartTimestamp: &begin}
}

func tenantsBackup(namespace, name string, status velerov1.BackupStatus) *oadpv1alpha1.NonAdminBackup {
	return &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       oadpv1alpha1.NonAdminBackupSpec{BackupSpec: &velerov1.BackupSpec{}},
		Status:     oadpv1alpha1.NonAdminBackupStatus{VeleroBackup: &oadpv1alpha1.VeleroBackup{Status: &status}},
	}
}

func TestNamespacesWithoutAGoodBackupAreListed(t *testing.T) {
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	lost := tenantsBackup("failed", "lost", ended(velerov1.BackupPhaseCompleted, time.Hour))
	lost.Status.Conditions = []metav1.Condition{{
		Type: string(oadpv1alpha1.NonAdminConditionAccepted), Status: metav1.ConditionTrue,
		Reason: oadpv1alpha1.ReasonVeleroBackupNotFound, LastTransitionTime: metav1.NewTime(noon),
	}}
	partial := tenantsBackup("bank", "secrets", ended(velerov1.BackupPhaseCompleted, time.Hour))
	partial.Spec.BackupSpec.IncludedResources = []string{"configmaps"}
	objects := []client.Object{lost, partial}
	for _, name := range []string{"shop", "bank", "empty", "failed", "covered", "openshift-adp", "kube-system"} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
			&corev1.ConfigMap{ObjectMeta: in(name, "kube-root-ca.crt")})
	}
	objects = append(objects,
		&appsv1.Deployment{ObjectMeta: in("shop", "web")}, &corev1.PersistentVolumeClaim{ObjectMeta: in("shop", "data")},
		&holdfastv1alpha1.BackupPlan{ObjectMeta: in("shop", "nightly")},
		&corev1.Secret{ObjectMeta: in("bank", "key")}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "empty", Name: "token", Annotations: map[string]string{"kubernetes.io/service-account.name": "default"},
		}},
		&appsv1.Deployment{ObjectMeta: in("failed", "web")}, &appsv1.Deployment{ObjectMeta: in("covered", "web")},
		&appsv1.Deployment{ObjectMeta: in("kube-system", "dns")}, &appsv1.Deployment{ObjectMeta: in("openshift-adp", "velero")},
		tenantsBackup("shop", "old", ended(velerov1.BackupPhaseCompleted, 72*time.Hour)),
		tenantsBackup("shop", "new", ended(velerov1.BackupPhaseCompleted, 30*time.Hour)),
		tenantsBackup("failed", "new", ended(velerov1.BackupPhasePartiallyFailed, time.Hour)),
		&velerov1.Backup{
			ObjectMeta: in("openshift-adp", "admins"), Status: ended(velerov1.BackupPhaseCompleted, time.Hour),
			Spec: velerov1.BackupSpec{IncludedNamespaces: []string{"covered"}},
		},
	)
	reader := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(objects...).Build()
	holdings, err := ReadHoldings(t.Context(), reader, "openshift-adp")
	require.NoError(t, err)
	assert.Len(t, holdings, 5)
	found := Unprotected(holdings, noon, 24*time.Hour)
	text := operatortest.Printed(t, "table", found, func(out io.Writer) error { return PrintUnprotected(out, found) })
	assert.Equal(t, []string{
		"NAMESPACE WORKLOADS CLAIMS DATA PLANS LAST-GOOD",
		"bank 0 0 1 0 never", "failed 1 0 0 0 never", "shop 1 1 0 1 2026-11-23T06:00:00Z",
	}, operatortest.Lines(text), "those without any first")
	assert.Len(t, Unprotected(holdings, noon, 48*time.Hour), 2)
}

func TestAnAdministratorsBackupCountsForTheNamespacesThatItIncludesWhole(t *testing.T) {
	for title, test := range map[string]struct {
		spec velerov1.BackupSpec
		want bool
	}{
		"all":          {velerov1.BackupSpec{}, true},
		"a star":       {velerov1.BackupSpec{IncludedNamespaces: []string{"*"}}, true},
		"by name":      {velerov1.BackupSpec{IncludedNamespaces: []string{"shop"}}, true},
		"others":       {velerov1.BackupSpec{IncludedNamespaces: []string{"bank"}}, false},
		"all but this": {velerov1.BackupSpec{ExcludedNamespaces: []string{"shop"}}, false},
		"by labels":    {velerov1.BackupSpec{LabelSelector: &metav1.LabelSelector{}}, false},
	} {
		assert.Equal(t, test.want, includes(&test.spec, "shop"), title)
	}
}
