package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
)

// begunAnew: the plan is another than that in the backup, and is served.
func begunAnew(before *backupPlan) func(*backupPlan) bool {
	return func(now *backupPlan) bool {
		return now.UID != before.UID && now.Status.UID == now.UID && now.Status.NextRun != nil
	}
}

// Not parallel: the policy is everybody's.
func TestARestoreBringsPlansWithoutTheirRecordsAndNoRequests(t *testing.T) {
	repeated(t, "carol", (*tenant).bringsPlansBack)
}

func (x *tenant) bringsPlansBack() {
	t := x.t
	setPolicy(t, map[string]string{"holdfast": `
defaultPlans:
- name: given
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ` + x.namespace + `}}
  spec: {schedule: "` + farOff + `", template: {spec: {backupSpec: {}}}}
`})
	given := &backupPlan{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "given"}}
	x.awaitPlan(given, "given, and ready", func(now *backupPlan) bool { return now.Status.NextRun != nil })
	plan := x.ready("nightly")
	x.patchPlan(plan, `{"metadata":{"annotations":{"holdfast.dev/run-now":"1"}}}`)
	plan = x.awaitPlan(plan, "one good run", func(now *backupPlan) bool { return now.Status.Counts.Good == 1 })
	require.Equal(t, "1", plan.Status.HandledRunNow)
	require.Len(t, x.runs(plan), 1)
	elsewhere := x.backUp("elsewhere", withSpec(func(spec *velerov1.BackupSpec) { spec.IncludedNamespaces = []string{"default"} }))
	x.awaitCondition(elsewhere, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonInvalidBackupSpec)
	absent := x.restore("absent", "no-such-backup")
	x.awaitRestoreRefused(absent, oadpv1alpha1.ReasonInvalidRestoreSpec)
	nab := x.completed("all")

	setPolicy(t, map[string]string{"holdfast": "{}"})
	for _, request := range []client.Object{plan.DeepCopy(), elsewhere, absent} {
		require.NoError(t, x.client.Delete(t.Context(), request))
	}
	awaitAllGone(t, given, plan, elsewhere, absent)
	nar := x.awaitFinalizedAs(x.restore("back", nab.Name, func(spec *velerov1.RestoreSpec) {
		spec.RestoreStatus = &velerov1.RestoreStatusSpec{IncludedResources: []string{"*"}}
	}), oadpv1alpha1.FinalizationPhaseCompleted)
	now := x.awaitPlan(plan, "back, and begun anew", begunAnew(plan))
	assert.Equal(t, plan.Spec, now.Spec)
	assert.Equal(t, "1", now.Status.HandledRunNow, "the request was for the plan in the backup")
	assert.Equal(t, holdfastv1alpha1.Counts{Good: 1}, now.Status.Counts, "with its status it continues the plan in the backup")
	assert.Equal(t, []types.UID{plan.UID}, now.Status.Continues)
	assert.Nil(t, now.Status.LastGood)
	assert.Nil(t, now.Status.LastRun)
	assert.Empty(t, now.OwnerReferences)
	for _, request := range []client.Object{given, elsewhere, absent} {
		assert.False(t, exists(t, request), "%T %s came back", request, request.GetName())
	}

	x.patchPlan(now, `{"spec":{"paused":true},"metadata":{"annotations":{"holdfast.dev/run-now":"2"}}}`)
	now = x.awaitPlan(now, "a run of its own", func(now *backupPlan) bool { return now.Status.Counts.Good == 2 })
	assert.Len(t, x.runs(plan), 2, "one of each plan")
	over := x.awaitFinalized(x.restore("over", nab.Name, func(spec *velerov1.RestoreSpec) {
		spec.ExistingResourcePolicy = velerov1.PolicyTypeUpdate
	}))
	left := x.awaitPlan(now, "there", func(*backupPlan) bool { return true })
	assert.True(t, left.Spec.Paused, "what exists is left as it is")
	assert.Equal(t, "2", left.Annotations[holdfastv1alpha1.AnnotationRunNow])
	assert.Equal(t, now.UID, left.UID)
	recordRestore(t, nar)
	recordRestore(t, over)
	require.NoError(t, x.client.Delete(t.Context(), now))
}

// A tenant writes into its bucket what it likes; a plan comes of it as if the tenant had created it.
func TestAForgedPlanInATenantsBucketBringsNoMarks(t *testing.T) {
	t.Parallel()
	x, account := newTenant(t, "heidi"), newAccount(t)
	location := x.own(account)
	x.awaitAvailable(location)
	x.plan("honest", farOff, nil)
	nab := x.completedInto("nightly", "own")
	forged := &backupPlan{
		TypeMeta: metav1.TypeMeta{APIVersion: holdfastv1alpha1.GroupVersion.String(), Kind: holdfastv1alpha1.KindBackupPlan},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: x.namespace, Name: "forged", UID: "old", Finalizers: []string{"forged.example.com/held"},
			Labels:      map[string]string{holdfastv1alpha1.LabelDefaultPlan: "true", "tier": "gold"},
			Annotations: map[string]string{holdfastv1alpha1.AnnotationRunNow: "1", "velero.io/restore-status": "true"},
		},
		Spec: holdfastv1alpha1.BackupPlanSpec{
			Schedule: farOff,
			Template: holdfastv1alpha1.BackupTemplate{Spec: holdfastv1alpha1.BackupTemplateSpec{BackupSpec: &velerov1.BackupSpec{}}},
		},
		Status: holdfastv1alpha1.BackupPlanStatus{UID: "old", HandledRunNow: "0", Counts: holdfastv1alpha1.Counts{Good: 9}},
	}
	velero := nab.Status.VeleroBackup.Name
	archive := filepath.Join(x.namespace, "backups", velero, velero+".tar.gz")
	packed, err := os.ReadFile(filepath.Join(account.Dir, archive))
	require.NoError(t, err)
	putObject(t, account.Bucket, archive, extended(t, packed, map[string]any{
		"resources/backupplans.holdfast.dev/namespaces/" + x.namespace + "/forged.json": forged,
	}))
	nar := x.awaitFinalized(x.restore("forged", nab.Name))
	now := x.awaitPlan(forged, "restored, and served", begunAnew(forged))
	assert.Equal(t, x.namespace, now.Annotations[restorespec.RestoredIntoAnnotation])
	assert.Equal(t, "gold", now.Labels["tier"])
	assert.NotContains(t, now.Labels, holdfastv1alpha1.LabelDefaultPlan)
	assert.NotContains(t, now.Annotations, holdfastv1alpha1.AnnotationRunNow)
	assert.Empty(t, now.Finalizers)
	assert.Zero(t, now.Status.Counts)
	assert.Empty(t, x.runs(forged))
	recordRestore(t, nar)
	x.remove(location)
}
