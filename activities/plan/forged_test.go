package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/synchronization"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
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
				made := s.fromBucket(name, uid, began)
				made.Spec.StorageLocation = location
				require.Equal(t, synchronization.Make, synchronization.Decide(made, judged, false))
				nab := synchronization.NewBackup(made, judged)
				synchronization.OfPlan(nab, made, synchronization.RecordedPlan(made), "uid-"+minutely)
				s.create(made, nab)
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
