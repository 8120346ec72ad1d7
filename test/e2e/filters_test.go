package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/policy/backupspec"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// Velero itself judges every pair of filters, and backupspec.BadFilters says the same of it.
func TestWhichFiltersVeleroRefuses(t *testing.T) {
	t.Parallel()
	filters := []func(*velerov1.BackupSpec){
		func(s *velerov1.BackupSpec) { s.IncludedResources = append(s.IncludedResources, "configmaps") },
		func(s *velerov1.BackupSpec) {
			s.ExcludedNamespaceScopedResources = append(s.ExcludedNamespaceScopedResources, "configmaps")
		},
		func(s *velerov1.BackupSpec) { s.ExcludedResources = append(s.ExcludedResources, "configmaps") },
		func(s *velerov1.BackupSpec) {
			s.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		},
		func(s *velerov1.BackupSpec) {
			s.IncludedNamespaceScopedResources = append(s.IncludedNamespaceScopedResources, "configmaps")
		},
		func(s *velerov1.BackupSpec) {
			s.OrLabelSelectors = []*metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}}
		},
		func(s *velerov1.BackupSpec) { s.IncludeClusterResources = new(bool) },
		func(s *velerov1.BackupSpec) { s.IncludedResources = append(s.IncludedResources, "*") },
		func(s *velerov1.BackupSpec) { s.ExcludedResources = append(s.ExcludedResources, "*") },
		func(s *velerov1.BackupSpec) {
			s.IncludedNamespaceScopedResources = append(s.IncludedNamespaceScopedResources, "*")
		},
		func(s *velerov1.BackupSpec) {
			s.ExcludedNamespaceScopedResources = append(s.ExcludedNamespaceScopedResources, "*")
		},
		func(s *velerov1.BackupSpec) {
			s.ExcludedClusterScopedResources = append(s.ExcludedClusterScopedResources, "nodes")
		},
		func(s *velerov1.BackupSpec) {
			s.ExcludedClusterScopedResources = append(s.ExcludedClusterScopedResources, "*")
		},
		func(s *velerov1.BackupSpec) {
			s.IncludedClusterScopedResources = append(s.IncludedClusterScopedResources, "nodes")
		},
	}
	x := newTenant(t, "alice")
	var made []*velerov1.Backup
	for i, one := range filters {
		for j := range i + 1 {
			if !sample.Whole() && (i+3*j)%8 != 0 {
				continue
			}
			backup := &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: fmt.Sprintf("%s-%d-%d", x.namespace, i, j)}}
			backup.Spec.IncludedNamespaces = []string{x.namespace}
			one(&backup.Spec)
			if i != j {
				filters[j](&backup.Spec)
			}
			require.NoError(t, admin.Create(t.Context(), backup))
			made = append(made, backup)
		}
	}
	var refused int
	for _, backup := range made {
		spec := backup.Spec.DeepCopy() // Velero fills it in
		awaitSuccess(t, func(ctx context.Context) error {
			if err := admin.Get(ctx, client.ObjectKeyFromObject(backup), backup); err != nil {
				return err
			}
			undecided := []velerov1.BackupPhase{"", velerov1.BackupPhaseNew, velerov1.BackupPhaseQueued, velerov1.BackupPhaseReadyToStart}
			if phase := backup.Status.Phase; slices.Contains(undecided, phase) {
				return fmt.Errorf("%s is %q", backup.Name, phase)
			}
			return nil
		})
		if backup.Status.Phase == velerov1.BackupPhaseFailedValidation {
			refused++
		}
		assert.Equal(t, backup.Status.Phase == velerov1.BackupPhaseFailedValidation, backupspec.BadFilters(spec) != "",
			"%s: Velero says %v, we %q", backup.Name, backup.Status.ValidationErrors, backupspec.BadFilters(spec))
	}
	assert.Positive(t, refused)
	assert.Less(t, refused, len(made))
}
