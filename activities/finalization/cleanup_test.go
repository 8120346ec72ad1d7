package finalization

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
)

func TestOnlyWhatWasMadeForTheRestoreIsDeleted(t *testing.T) {
	nar := &oadpv1alpha1.NonAdminRestore{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: narName}}
	other := &oadpv1alpha1.NonAdminRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "crew", Name: narName}}
	made := func(name string, of client.Object, nacuuid, namespace string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: owner.Restore.Meta(of, nacuuid, namespace, name)}
	}
	objects := map[string]*corev1.ConfigMap{
		"modifier":   made("modifier", nar, restoreName, oadp),
		"forged":     made("forged", other, restoreName, oadp),
		"sibling":    made("sibling", nar, "team-undo-2", oadp),
		"elsewhere":  made("elsewhere", nar, restoreName, team),
		"unlabelled": {ObjectMeta: metav1.ObjectMeta{Namespace: oadp, Name: "unlabelled"}},
	}
	var all []client.Object
	for _, object := range objects {
		all = append(all, object)
	}
	s := newScene(t, all...)
	for range 2 {
		found, err := s.run(cleanupTask{})
		require.NoError(t, err)
		assert.Zero(t, found)
	}
	assert.Equal(t, []string{"delete modifier"}, s.writes)
	require.NoError(t, s.Client.Get(t.Context(), client.ObjectKeyFromObject(s.Restore), s.Restore), "what the tenant asked for stays")
}
