package collection_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestTheModifierOfADrillThatIsOverIsDeleted(t *testing.T) {
	running, ended := fake.Drill("running", "nightly"), fake.Drill("ended", "nightly")
	ended.Status.Phase = holdfastv1alpha1.DrillEnded
	made := func(name string, age time.Duration) metav1.ObjectMeta {
		meta := owner.DrillMeta(fake.Cluster, fake.Drill(name, "nightly"), fake.OADPNamespace)
		meta.CreationTimestamp = metav1.NewTime(time.Now().Add(-age))
		return meta
	}
	modifier := func(name string, age time.Duration) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: made(name, age)}
	}
	forged := modifier("forged", time.Hour)
	forged.Name = "settings"
	w := fake.New(t, running, ended, forged, activitytest.Listed(),
		modifier("running", time.Hour), modifier("ended", time.Hour), modifier("gone", time.Hour), modifier("young", 0),
		modifier("restoring", time.Hour), &velerov1.Restore{ObjectMeta: made("restoring", time.Hour)},
	)
	result := activitytest.CollectNow(t, w)
	assert.Equal(t, []contract.CollectedKind{{Kind: "ConfigMap", Count: 2}}, result.Deleted)
	var left corev1.ConfigMapList
	require.NoError(t, w.Client.List(t.Context(), &left, client.HasLabels{holdfastv1alpha1.LabelDrill}))
	var of []string
	for _, one := range left.Items {
		of = append(of, one.Labels[holdfastv1alpha1.LabelDrill])
	}
	assert.ElementsMatch(t, []string{"uid-running", "uid-forged", "uid-young", "uid-restoring"}, of)
	require.NoError(t, w.Client.Get(t.Context(), types.NamespacedName{Namespace: fake.OADPNamespace, Name: "settings"}, forged))
}
