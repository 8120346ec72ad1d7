package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/synchronization"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
)

// With the key to a tenant's own bucket alone, anyone can write there that a plan has made a backup. The plan must not delete its
// good backups in the administrator's bucket for it. continued: by adoption; otherwise by the record of the present plan.
func TestARecordInATenantsBucketDoesNotCount(t *testing.T) {
	amongOthers(t, func(t *testing.T, others int64) {
		for _, continued := range []bool{false, true} {
			s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) {
				p.Spec.Keep = &holdfastv1alpha1.Keep{Last: 2}
				if continued {
					p.Status.UID = earlier
				}
			})
			s.among(others)
			uid := "uid-" + minutely
			if continued {
				uid = earlier
			}
			bsl := owner.NACUUID(fake.Cluster, fake.Namespace, "own", "uid-own")
			of := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: "own", UID: "uid-own"}}
			location := &velerov1.BackupStorageLocation{ObjectMeta: owner.Location.Meta(of, bsl, fake.OADPNamespace, bsl)}
			require.NoError(t, s.Client.Create(t.Context(), location))
			put := func(name, location string, began metav1.Time, judged *synchronization.Location) {
				vname := "team-" + name + "-5b0c8a3e-0000-4000-8000-000000000000"
				made := &velerov1.Backup{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: fake.OADPNamespace, Name: vname, UID: types.UID("velero-" + name), CreationTimestamp: metav1.NewTime(s.now),
						Labels: map[string]string{
							oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue, oadpv1alpha1.NabOriginNACUUIDLabel: vname,
							oadpv1alpha1.ManagedByLabel: oadpv1alpha1.ManagedByLabelValue, holdfastv1alpha1.LabelRecordedPlan: uid,
						},
						Annotations: map[string]string{
							oadpv1alpha1.NabOriginNamespaceAnnotation: fake.Namespace, oadpv1alpha1.NabOriginNameAnnotation: name,
							holdfastv1alpha1.AnnotationRecordedPlan: minutely,
							holdfastv1alpha1.AnnotationRecordedDue:  began.UTC().Format(time.RFC3339),
						},
					},
					Spec:   velerov1.BackupSpec{StorageLocation: location, IncludedNamespaces: []string{fake.Namespace}},
					Status: velerov1.BackupStatus{Phase: velerov1.BackupPhaseCompleted, StartTimestamp: &began, CompletionTimestamp: &began},
				}
				require.Equal(t, synchronization.Make, synchronization.Decide(made, judged, false))
				require.NoError(t, s.Client.Create(t.Context(), made))
				nab := synchronization.NewBackup(made, judged)
				synchronization.OfPlan(nab, made, synchronization.RecordedPlan(made), "uid-"+minutely)
				require.NoError(t, s.Client.Create(t.Context(), nab))
				nab.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
				nab.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{NACUUID: vname, Name: vname, Namespace: fake.OADPNamespace, Status: &made.Status}
				require.NoError(t, s.Client.Status().Update(t.Context(), nab))
			}
			admins := &synchronization.Location{Name: "default"}
			tenants := &synchronization.Location{Name: bsl, Tenants: true, Owner: fake.Namespace, NaBSL: "own"}
			put("real-1", "default", metav1.NewTime(s.now.Add(-3*time.Hour)), admins)
			put("real-2", "default", metav1.NewTime(s.now.Add(-2*time.Hour)), admins)
			require.Empty(t, s.refresh().Delete)
			put("forged-1", bsl, metav1.NewTime(s.now.Add(-2*time.Minute)), tenants)
			put("forged-2", bsl, metav1.NewTime(s.now.Add(-time.Minute)), tenants)
			assert.Empty(t, s.refresh().Delete, "continued: %t", continued)
			assert.Empty(t, s.status().Retention.Due, "continued: %t", continued)
			assert.Equal(t, "real-2", s.status().LastGood.Name, "continued: %t", continued)
		}
	})
}
