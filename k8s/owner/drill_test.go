package owner_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
)

func TestWhatWasMadeForADrillSaysSo(t *testing.T) {
	drill := &holdfastv1alpha1.RestoreDrill{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "weekly", UID: "u-1"}}
	made := owner.DrillMeta("west", drill, "openshift-adp")
	assert.Regexp(t, "^drill-[0-9a-f]{20}$", made.Name)
	assert.Empty(t, validation.IsDNS1123Label(made.Name))
	key, uid, ours := owner.DrillOf("west", &made)
	assert.True(t, ours)
	assert.Equal(t, types.NamespacedName{Namespace: "team", Name: "weekly"}, key)
	assert.EqualValues(t, "u-1", uid)
	assert.True(t, owner.ForDrill("west", &made, "u-1"))
	assert.False(t, owner.ForDrill("west", &made, "u-2"))
	assert.False(t, owner.ForDrill("east", &made, "u-1"), "that of another Kubernetes cluster")
	for title, spoil := range map[string]func(*metav1.ObjectMeta){
		"another drill's label": func(m *metav1.ObjectMeta) { m.Labels[holdfastv1alpha1.LabelDrill] = "u-2" },
		"no label":              func(m *metav1.ObjectMeta) { m.Labels = nil },
		"no name of a drill":    func(m *metav1.ObjectMeta) { delete(m.Annotations, holdfastv1alpha1.AnnotationDrillName) },
		"a name of its own":     func(m *metav1.ObjectMeta) { m.Name = "kube-system" },
	} {
		forged := owner.DrillMeta("west", drill, "openshift-adp")
		spoil(&forged)
		assert.False(t, owner.ForDrill("west", &forged, "u-1"), title)
	}
}
