package outage_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/test/outage"
)

func TestWhatBuildsMayWriteOtherwiseIsNotCompared(t *testing.T) {
	older := asJSON(map[string]any{
		"status": map[string]any{
			"message": "it is \"none\" that can be had", "phase": "Created", "conditions": []metav1.Condition{{Type: "Accepted"}},
		},
		"excluded": []string{"nonadminbackups"},
		"labels":   map[string]string{"a": "b"},
		"warnings": []string{"holdfast volumes: PersistentVolume data: none"},
	})
	newer := asJSON(map[string]any{
		"status": map[string]any{
			"message": "it cannot be had", "phase": "Created", "uid": "UUID", "observedGeneration": 2,
			"conditions": []metav1.Condition{{Type: "Accepted"}, {Type: "Complete", ObservedGeneration: 2}, {Type: "Stalled"}},
		},
		"excluded": []string{"nonadminbackups", "foundationdbrestores.fdb.holdfast.dev"},
		"labels":   map[string]string{"a": "b", "velero.io/exclude-from-backup": "true"},
		"warnings": []string{"holdfast volumes: PersistentVolume data: not valid"},
	})
	assert.NotEqual(t, older, newer)
	assert.Equal(t, outage.OfAnyBuild(older), outage.OfAnyBuild(newer))
	other := asJSON(map[string]any{"status": map[string]any{"message": "", "phase": "New"}})
	assert.NotEqual(t, outage.OfAnyBuild(older), outage.OfAnyBuild(other))
	assert.Equal(t, []string{"create pods a"}, outage.WithoutWritesOf("deployments", []string{"create pods a", "patch deployments a"}))
}
