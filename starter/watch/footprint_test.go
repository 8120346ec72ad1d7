package watch

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/watch/trim"
)

func heap() int {
	runtime.GC()
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return int(now.HeapAlloc)
}

// inMemory is what the cache holds of an object as it comes from the API server.
func inMemory[T client.Object](t *testing.T, empty func() T, object T) int {
	t.Helper()
	data, err := json.Marshal(object)
	require.NoError(t, err)
	const many = 50
	all := make([]any, 0, many)
	before := heap()
	for range many {
		read := empty()
		require.NoError(t, json.Unmarshal(data, read))
		stored, err := trimmed(read)
		require.NoError(t, err)
		all = append(all, stored)
	}
	held := heap() - before
	runtime.KeepAlive(all)
	return held / many
}

func numbered(n int) map[string]string {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprint(i)] = ""
	}
	return all
}

// Few bytes of JSON may be many in memory: what is kept is bounded by these.
func TestSmallStructuresDoNotFillTheCache(t *testing.T) {
	const limit = 16 << 10
	for title, spec := range map[string]*velerov1.BackupSpec{
		"selectors": {OrLabelSelectors: slices.Repeat([]*metav1.LabelSelector{{}}, 2_600)},
		"labels":    {OrLabelSelectors: slices.Repeat([]*metav1.LabelSelector{{MatchLabels: map[string]string{"": ""}}}, 300)},
		"hooks":     {Hooks: velerov1.BackupHooks{Resources: slices.Repeat([]velerov1.BackupResourceHookSpec{{}}, 650)}},
		"names":     {ExcludedNamespaces: slices.Repeat([]string{""}, 2_600)},
		"a map":     {LabelSelector: &metav1.LabelSelector{MatchLabels: numbered(800)}},
	} {
		t.Run(title, func(t *testing.T) {
			nab := fake.NAB("nightly")
			nab.Status.Phase, nab.Spec.BackupSpec = oadpv1alpha1.NonAdminPhaseBackingOff, spec
			require.Less(t, size(t, spec), 8<<10)
			assert.Equal(t, size(t, spec), trim.OmittedBytes(kept(t, nab)))
			assert.Less(t, inMemory(t, func() *oadpv1alpha1.NonAdminBackup { return &oadpv1alpha1.NonAdminBackup{} }, nab), limit)
		})
	}
	t.Run("labels of an object", func(t *testing.T) {
		nab := fake.NAB("nightly")
		nab.Labels = numbered(600)
		assert.Less(t, inMemory(t, func() *oadpv1alpha1.NonAdminBackup { return &oadpv1alpha1.NonAdminBackup{} }, nab), limit)
	})
	t.Run("a location's configuration", func(t *testing.T) {
		store := fake.NaBSL("store")
		store.Spec.BackupStorageLocationSpec.Config = numbered(3_000)
		require.Less(t, size(t, store), 32<<10)
		assert.NotZero(t, trim.OmittedBytes(kept(t, store)))
	})
	t.Run("what an approval holds", func(t *testing.T) {
		request := &oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest{}
		request.Status.VeleroBackupStorageLocationApprovalRequest = &oadpv1alpha1.VeleroBackupStorageLocationApprovalRequest{
			PendingSpec: &velerov1.BackupStorageLocationSpec{Config: numbered(5_000)},
		}
		require.Less(t, size(t, request), 64<<10)
		assert.NotZero(t, trim.OmittedBytes(kept(t, request)))
	})
}

// What somebody would write is kept, so that the watcher judges it.
func TestAnOrdinarySpecIsKept(t *testing.T) {
	nab := fake.NAB("nightly")
	nab.Status.Phase = oadpv1alpha1.NonAdminPhaseBackingOff
	for i := range 100 {
		nab.Spec.BackupSpec.IncludedResources = append(nab.Spec.BackupSpec.IncludedResources, fmt.Sprintf("resources-%d.example.dev", i))
	}
	assert.Equal(t, nab.Spec, kept(t, nab).Spec)
}
