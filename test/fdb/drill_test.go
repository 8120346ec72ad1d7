package fdb_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// label lets drills use a cluster, as its owner does.
func (x *tenant) label(cluster string) {
	x.t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"holdfast.dev/drill-target":"true"}}}`))
	require.NoError(x.t, admin.Patch(x.t.Context(), &foundationdbv1beta2.FoundationDBCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: cluster},
	}, patch))
}

// drill creates a FoundationDBDrill.
func (x *tenant) drill(name string, spec fdbv1alpha1.FoundationDBDrillSpec) *fdbv1alpha1.FoundationDBDrill {
	x.t.Helper()
	drill := &fdbv1alpha1.FoundationDBDrill{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name}, Spec: spec}
	require.NoError(x.t, x.client.Create(x.t.Context(), drill))
	x.t.Cleanup(func() {
		if x.t.Failed() {
			x.t.Logf("%s", x.kubectl("get", "foundationdbdrills,foundationdbrestores", "-o", "yaml"))
			x.t.Logf("%s", x.kubectl("get", "events"))
		}
		_ = x.client.Delete(context.Background(), drill.DeepCopy()) // it may be gone
	})
	return drill
}

// awaitDrill waits for the end of a drill, and returns it with its verdict.
func (x *tenant) awaitDrill(drill *fdbv1alpha1.FoundationDBDrill) (*fdbv1alpha1.FoundationDBDrill, *metav1.Condition) {
	x.t.Helper()
	present := &fdbv1alpha1.FoundationDBDrill{}
	eventually.IsTrue(x.t, manyPatience, "the drill has ended", func() bool {
		return x.client.Get(x.t.Context(), client.ObjectKeyFromObject(drill), present) == nil &&
			present.Status.Phase == fdbv1alpha1.FDBDrillEnded && len(present.Finalizers) == 0
	})
	verified := meta.FindStatusCondition(present.Status.Conditions, holdfastv1alpha1.ConditionVerified)
	require.NotNil(x.t, verified)
	return present, verified
}

func (x *tenant) requireNoRestores() {
	x.t.Helper()
	list := &fdbv1alpha1.FoundationDBRestoreList{}
	require.NoError(x.t, x.client.List(x.t.Context(), list, client.InNamespace(x.namespace)))
	require.Empty(x.t, list.Items)
}

// What is backed up is restored into another database, compared with what the source held, and cleared. A target that is not
// labelled, not empty, or the source, is left as it is.
func TestADrillVerifiesABackup(t *testing.T) { onOwnIfShort(t, drillVerifies) }

func drillVerifies(t *testing.T, x *tenant) {
	x.cluster("ledger")
	ledger := x.console("ledger")
	ledger.write("orders/", "orders0", map[string]string{"orders/1": "tea", "orders/2": "salt", `orders/\x00\xff`: `a\x01b`})
	ledger.write("users/", "users0", map[string]string{"users/1": "ann"})
	backup := x.backUp("ledger")
	x.destination("spare")
	x.await(backup, "restorable", func(o *fdbv1alpha1.FoundationDBBackup) bool {
		return reconciled(o) && o.Status.Backups[0].LatestRestorable != nil
	})
	spare := x.console("spare")
	spec := fdbv1alpha1.FoundationDBDrillSpec{
		BackupName: "ledger", TargetClusterName: "spare", Timeout: "10m",
		Ranges: []fdbv1alpha1.DrillKeyRange{
			{Name: "orders", Start: "orders/", End: "orders0"}, {Name: "users", Start: "users/", End: "users0"},
		},
	}

	refused := func(name, why string, change func(*fdbv1alpha1.FoundationDBDrillSpec)) {
		t.Helper()
		wrong := spec
		change(&wrong)
		ended, verified := x.awaitDrill(x.drill(name, wrong))
		assert.Equal(t, metav1.ConditionUnknown, verified.Status)
		assert.Equal(t, holdfastv1alpha1.ReasonNotVerified, verified.Reason)
		assert.Contains(t, verified.Message, why)
		assert.Nil(t, ended.Status.Begun)
		x.requireNoRestores()
	}
	kept := map[string]string{"mine": "1"}
	spare.write("mine", "mine0", kept)
	refused("unlabelled", "has no label", func(*fdbv1alpha1.FoundationDBDrillSpec) {})
	x.label("spare")
	refused("occupied", "holds data", func(*fdbv1alpha1.FoundationDBDrillSpec) {})
	require.Equal(t, kept, spare.keys("a", "z"), "the target is unchanged")
	x.label("ledger")
	refused("itself", "is the one that was backed up", func(s *fdbv1alpha1.FoundationDBDrillSpec) { s.TargetClusterName = "ledger" })
	require.Len(t, ledger.keys("a", "z"), 4)
	spare.write("mine", "mine0", nil)

	ended, verified := x.awaitDrill(x.drill("good", spec))
	require.Equal(t, metav1.ConditionTrue, verified.Status, verified.Message)
	assert.Equal(t, holdfastv1alpha1.ReasonVerified, verified.Reason)
	assert.Empty(t, ended.Status.Findings)
	require.NotNil(t, ended.Status.Measured)
	assert.EqualValues(t, 4, ended.Status.Measured.Keys)
	assert.EqualValues(t, len("orders/1tea"+"orders/2salt"+"orders/..a.b"+"users/1ann"), ended.Status.Measured.Bytes)
	assert.Positive(t, ended.Status.Measured.RestoreSeconds)
	require.Len(t, ended.Status.Records, 2)
	assert.NotEmpty(t, ended.Status.Records[0].Digest)
	assert.NotNil(t, ended.Status.Cleared)
	assert.Empty(t, spare.keys(`\x00`, `\xff`), "the target is empty again")
	x.requireNoRestores()
	assert.Contains(t, x.kubectl("get", "fdbdrill", "good"), "True")

	// The source has gone on. The same version is compared with the record of the time when it was the present one.
	ledger.write("orders/", "orders0", map[string]string{"orders/9": "later"})
	again := spec
	again.Version = ended.Status.Version
	earlier, verified := x.awaitDrill(x.drill("again", again))
	assert.Equal(t, holdfastv1alpha1.ReasonVerified, verified.Reason, verified.Message)
	assert.Equal(t, ended.Status.Records, earlier.Status.Records)
	assert.EqualValues(t, 4, earlier.Status.Measured.Keys)

	// Deleted while it restores: the target is empty then, too.
	running := x.drill("deleted", spec)
	eventually.IsTrue(t, patience, "its restore has begun", func() bool {
		present := &fdbv1alpha1.FoundationDBDrill{}
		return x.client.Get(t.Context(), client.ObjectKeyFromObject(running), present) == nil && present.Status.Begun != nil
	})
	require.NoError(t, x.client.Delete(t.Context(), running))
	eventually.IsTrue(t, patience, "it is gone", func() bool {
		return apierrors.IsNotFound(x.client.Get(t.Context(), client.ObjectKeyFromObject(running), running))
	})
	assert.Empty(t, spare.keys(`\x00`, `\xff`))
	x.requireNoRestores()
}

// A file in the container that was changed: FoundationDB restores it without a word, and the digests show it.
func TestAChangedFileFailsItsDrill(t *testing.T) {
	sample.InLong(t, "TestADrillVerifiesABackup")
	t.Parallel()
	if own == nil {
		t.Skip("FoundationDB's own programs are neither in FDB_BIN_DIR nor in a folder shared/fdb beside the checkout")
	}
	x := newTenant(t)
	x.servers = &sync.Map{}
	x.cluster("ledger")
	const value = "a-value-that-somebody-changes"
	x.console("ledger").write("orders/", "orders0", map[string]string{"orders/1": value, "orders/2": "salt"})
	backup := x.backUp("ledger")
	x.destination("spare")
	x.label("spare")
	x.await(backup, "restorable", func(o *fdbv1alpha1.FoundationDBBackup) bool {
		return reconciled(o) && o.Status.Backups[0].LatestRestorable != nil
	})
	changed := 0
	for _, key := range x.data("ledger") {
		if !strings.Contains(key, "/kvranges/") {
			continue
		}
		file := filepath.Join(filepath.Dir(stack.Storage().Dir), bucket, key)
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		if other := bytes.ReplaceAll(content, []byte(value), []byte(strings.ToUpper(value))); !bytes.Equal(content, other) {
			require.NoError(t, os.WriteFile(file, other, 0o600))
			changed++
		}
	}
	require.Positive(t, changed, "%v", x.data("ledger"))

	ended, verified := x.awaitDrill(x.drill("changed", fdbv1alpha1.FoundationDBDrillSpec{
		BackupName: "ledger", TargetClusterName: "spare", Timeout: "5m",
	}))
	assert.Equal(t, metav1.ConditionFalse, verified.Status)
	assert.Equal(t, holdfastv1alpha1.ReasonChecksFailed, verified.Reason)
	require.Len(t, ended.Status.Findings, 1)
	assert.Contains(t, ended.Status.Findings[0].Message, "range all: 2 keys")
	assert.Contains(t, ended.Status.Findings[0].Message, "their digests differ")
	assert.NotNil(t, ended.Status.Cleared)
	assert.Empty(t, x.console("spare").keys(`\x00`, `\xff`), "the target is empty again")

	// One that FoundationDB cannot read: the restore does not end.
	broken := 0
	for _, key := range x.data("ledger") {
		if strings.Contains(key, "/kvranges/") {
			file := filepath.Join(filepath.Dir(stack.Storage().Dir), bucket, key)
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, bytes.Repeat([]byte{7}, len(content)), 0o600))
			broken++
		}
	}
	require.Positive(t, broken)
	ended, verified = x.awaitDrill(x.drill("broken", fdbv1alpha1.FoundationDBDrillSpec{
		BackupName: "ledger", TargetClusterName: "spare", Timeout: "4m",
	}))
	t.Logf("%s: %+v", verified.Message, ended.Status.Findings)
	assert.Equal(t, metav1.ConditionFalse, verified.Status)
	assert.Equal(t, holdfastv1alpha1.ReasonRestoreFailed, verified.Reason)
	require.NotEmpty(t, ended.Status.Findings)
	assert.NotNil(t, ended.Status.Cleared)
	assert.Empty(t, x.console("spare").keys(`\x00`, `\xff`), "the target is empty again")
	x.requireNoRestores()
}

// Killed at every phase, each process in its turn: one restore, the same verdict, and the target is empty.
func TestKilledAtEveryPhaseADrillEndsTheSame(t *testing.T) {
	x := newTenant(t)
	x.cluster("ledger")
	x.console("ledger").write("orders/", "orders0", map[string]string{"orders/1": "tea", "orders/2": "salt"})
	backup := x.backUp("ledger")
	target := x.destination("spare")
	x.label("spare")
	x.await(backup, "restorable", func(o *fdbv1alpha1.FoundationDBBackup) bool {
		return reconciled(o) && o.Status.Backups[0].LatestRestorable != nil
	})
	processes := []string{env.FDBWorker}
	if sample.Whole() {
		processes = append(processes, env.Watcher, env.Temporal)
	}
	for i, name := range processes {
		process := stack.Component(name)
		drill := x.drill("killed-"+name, fdbv1alpha1.FoundationDBDrillSpec{BackupName: "ledger", TargetClusterName: "spare"})
		seen := map[fdbv1alpha1.FoundationDBDrillPhase]bool{}
		for !seen[fdbv1alpha1.FDBDrillEnded] {
			present := &fdbv1alpha1.FoundationDBDrill{}
			eventually.IsTrue(t, patience, fmt.Sprintf("another phase than %v", seen), func() bool {
				err := x.client.Get(t.Context(), client.ObjectKeyFromObject(drill), present)
				return err == nil && present.Status.Phase != "" && !seen[present.Status.Phase]
			})
			seen[present.Status.Phase] = true
			if present.Status.Phase != fdbv1alpha1.FDBDrillEnded {
				require.NoError(t, process.Kill())
				require.NoError(t, process.Restart(t.Context()))
			}
		}
		t.Logf("%s killed in phases %v", name, seen)
		ended, verified := x.awaitDrill(drill)
		assert.Equal(t, metav1.ConditionTrue, verified.Status, "%s killed: %s", name, verified.Message)
		assert.NotNil(t, ended.Status.Cleared)
		assert.Empty(t, x.console("spare").keys(`\x00`, `\xff`))
		requireRestores(t, target, i+1)
		x.requireNoRestores()
	}
}
