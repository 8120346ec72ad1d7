package production_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	enumspb "go.temporal.io/api/enums/v1"
	temporalclient "go.temporal.io/sdk/client"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tenants"
	"holdfast.dev/holdfast/workflows/contract"
)

// pausedByHand is how many workflows openPaused starts that Schedules or others would start.
const pausedByHand = 4

// maxLocations bounds the locations, which are deleted all at once: each lists the namespace's backups, within 5 seconds.
const maxLocations = 5

// each is how many objects there are of all kinds but backups.
func each(count int) int { return count / 20 }

// open makes objects whose workflows wait, that many in all: for Velero, for an administrator, for a FoundationDB cluster that is not
// there. Then another controller is in charge, and what Schedules start waits for its end.
func (r *rollout) open(count int) {
	r.T.Helper()
	require.NoError(r.T, r.Admin.Create(r.T.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: policy.ConfigMapName},
		Data: map[string]string{
			policy.ConfigMapKey:    "requireApprovalForBSL: true",
			policy.ConfigMapOwnKey: "queue: {maxActiveRestores: 200}\ndrills: {enabled: true, maxActive: 100}",
		},
	}))
	_, err := r.StartWatcher(r.T.Context(), env.Watcher)
	require.NoError(r.T, err)
	r.BackUp("source", "")
	r.complete("source")
	made := r.openVelero(each(count))
	made += r.openFDB(each(count))
	for i := range count - made {
		r.BackUp(numbered("backup", i), "")
	}
	r.awaitMade(count - made + 1)
	r.openCoordinators()
}

// put creates an object of the tenant's, which is deleted at the end if its workflow would go on without end.
func (r *rollout) put(object client.Object, remove bool) {
	r.T.Helper()
	object.SetNamespace(r.Name)
	require.NoError(r.T, r.Admin.Create(r.T.Context(), object))
	if remove {
		r.opened = append(r.opened, func() { require.NoError(r.T, r.Admin.Delete(r.T.Context(), object)) })
	}
}

// openVelero makes objects of Velero's half, and returns how many.
func (r *rollout) openVelero(each int) int {
	r.T.Helper()
	r.put(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "own"},
		StringData: map[string]string{"cloud": "[default]\naws_access_key_id = a\naws_secret_access_key = b\n"},
	}, false)
	for i := range each {
		r.put(&oadpv1alpha1.NonAdminRestore{
			ObjectMeta: metav1.ObjectMeta{Name: numbered("restore", i)},
			Spec:       oadpv1alpha1.NonAdminRestoreSpec{RestoreSpec: &velerov1.RestoreSpec{BackupName: "source"}},
		}, true)
		r.put(&oadpv1alpha1.NonAdminDownloadRequest{
			ObjectMeta: metav1.ObjectMeta{Name: numbered("download", i)},
			Spec: oadpv1alpha1.NonAdminDownloadRequestSpec{
				Target: velerov1.DownloadTarget{Kind: velerov1.DownloadTargetKindBackupLog, Name: "source"},
			},
		}, true)
		plan := &holdfastv1alpha1.BackupPlan{ObjectMeta: metav1.ObjectMeta{Name: numbered("plan", i)}}
		plan.Spec.Schedule = "0 2 1 1 *"
		plan.Spec.Template.Spec.BackupSpec = &velerov1.BackupSpec{SnapshotVolumes: ptr.To(false)}
		plan.Spec.Keep = &holdfastv1alpha1.Keep{Last: 1}
		r.put(plan, true)
		drill := &holdfastv1alpha1.RestoreDrill{ObjectMeta: metav1.ObjectMeta{Name: numbered("drill", i)}}
		drill.Spec.BackupName = "source"
		r.put(drill, true)
	}
	locations := min(each, maxLocations)
	for i := range locations {
		r.put(&oadpv1alpha1.NonAdminBackupStorageLocation{
			ObjectMeta: metav1.ObjectMeta{Name: numbered("location", i)},
			Spec: oadpv1alpha1.NonAdminBackupStorageLocationSpec{BackupStorageLocationSpec: &velerov1.BackupStorageLocationSpec{
				Provider: "aws", Config: map[string]string{"region": "eu-central-1"},
				StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: numbered("bucket", i)}},
				Credential:  &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "own"}, Key: "cloud"},
			}},
		}, true)
	}
	return 4*each + 2*locations // a location has two workflows
}

// openFDB makes objects of FoundationDB's half, and returns how many.
func (r *rollout) openFDB(each int) int {
	r.T.Helper()
	for i := range each {
		backup := &fdbv1alpha1.FoundationDBBackup{ObjectMeta: metav1.ObjectMeta{Name: numbered("fdb", i)}}
		backup.Spec.ClusterName, backup.Spec.Credentials.SecretName = "gone", "own"
		backup.Spec.Destination.Bucket = "fdb-backups"
		backup.Spec.Expiry.DeletionFinalizer = ptr.To(false)
		r.put(backup, true)
		restore := &fdbv1alpha1.FoundationDBRestore{ObjectMeta: metav1.ObjectMeta{Name: numbered("fdb-restore", i)}}
		restore.Spec.BackupName, restore.Spec.DestinationClusterName = numbered("fdb", i), "gone"
		r.put(restore, true)
		drill := &fdbv1alpha1.FoundationDBDrill{ObjectMeta: metav1.ObjectMeta{Name: numbered("fdb-drill", i)}}
		drill.Spec.BackupName, drill.Spec.TargetClusterName = numbered("fdb", i), "gone-too"
		r.put(drill, true)
	}
	return 2 * each // the drills end at once
}

// openCoordinators starts those that clusters share, for a member and a user that are no workflows: they wait for more requests.
func (r *rollout) openCoordinators() {
	r.T.Helper()
	cluster := r.ClusterID()
	container := "127.0.0.1:9/bucket/" + r.Name
	r.update(contract.FDBContainerID(container), contract.KindFDBContainer, contract.FDBContainerInput{Container: container},
		contract.UpdateFDBContainer, contract.FDBContainerRequest{
			Container: container, Action: contract.FDBContainerUse,
			User: contract.FDBContainerUser{WorkflowID: "user", Name: r.Name + "/user", Cluster: cluster, Namespace: r.Name},
		})
	r.update(contract.FDBClusterID("lab:1"), contract.KindFDBCluster, contract.FDBClusterInput{Cluster: "lab:1"},
		contract.UpdateFDBCluster, contract.FDBCommandRequest{
			Cluster: "lab:1", Member: contract.FDBMember{WorkflowID: "member", Name: r.Name + "/member"},
		})
}

func (r *rollout) update(id string, kind contract.Kind, input any, name string, request any) {
	r.T.Helper()
	start := r.temporal.NewWithStartWorkflowOperation(temporalclient.StartWorkflowOptions{
		ID: id, TaskQueue: kind.TaskQueue(r.ClusterID()), WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, kind.Workflow, input)
	_, err := r.temporal.UpdateWithStartWorkflow(r.T.Context(), temporalclient.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start, UpdateOptions: temporalclient.UpdateWorkflowOptions{
			UpdateName: name, WaitForStage: temporalclient.WorkflowUpdateStageAccepted, Args: []any{request},
		},
	})
	require.NoError(r.T, err)
}

// openPaused starts what ends soon, and wakes what has settled, while another controller is in charge: they wait for its end.
func (r *rollout) openPaused() {
	r.T.Helper()
	labels := map[string]string{"app": "rival"}
	rival := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: "non-admin-controller"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "example.com/rival:1"}}},
			},
		},
	}
	require.NoError(r.T, r.Admin.Create(r.T.Context(), rival))
	r.opened = append([]func(){func() { require.NoError(r.T, r.Admin.Delete(r.T.Context(), rival)) }}, r.opened...)
	velero := r.processes["old"][0]
	r.Await(func(ctx context.Context) error {
		said, err := readiness(ctx, velero)
		if err == nil && !strings.Contains(said, rival.Name) {
			err = fmt.Errorf("the worker has not noticed %s: %s", rival.Name, said)
		}
		return err
	})
	restore := &oadpv1alpha1.NonAdminRestore{}
	require.NoError(r.T, r.Admin.Get(r.T.Context(), client.ObjectKey{Namespace: r.Name, Name: numbered("restore", 0)}, restore))
	ref := contract.ObjectRef{Namespace: r.Name, Name: restore.Name, UID: string(restore.UID)}
	for kind, input := range map[*contract.Kind]any{
		&contract.KindCollection:      contract.ScheduledInput{Cluster: r.ClusterID()},
		&contract.KindSynchronization: contract.ScheduledInput{Cluster: r.ClusterID()},
		&contract.KindDefaultPlans:    contract.ScheduledInput{Cluster: r.ClusterID()},
		&contract.KindFinalization:    contract.ObjectInput{Cluster: r.ClusterID(), Ref: ref},
	} {
		_, err := r.temporal.ExecuteWorkflow(r.T.Context(), temporalclient.StartWorkflowOptions{
			ID: "by-hand-" + kind.Workflow, TaskQueue: kind.TaskQueue(r.ClusterID()),
		}, kind.Workflow, input)
		require.NoError(r.T, err)
	}
	woken := r.wake(contract.KindLocation, &oadpv1alpha1.NonAdminBackupStorageLocationList{}) +
		r.wake(contract.KindDownload, &oadpv1alpha1.NonAdminDownloadRequestList{}) +
		r.wake(contract.KindDrill, &holdfastv1alpha1.RestoreDrillList{})
	r.Await(func(ctx context.Context) error {
		waiting := 0
		for _, run := range r.list("ExecutionStatus = 'Running' AND (WorkflowId STARTS_WITH 'by-hand-' OR WorkflowType IN " +
			"('NonAdminBackupStorageLocation', 'NonAdminDownloadRequest', 'RestoreDrill'))") {
			described, err := r.temporal.DescribeWorkflowExecution(ctx, run.Execution.WorkflowId, run.Execution.RunId)
			if err == nil && len(described.PendingActivities) > 0 {
				waiting++
			}
		}
		if waiting < woken+pausedByHand {
			return fmt.Errorf("%d of %d workflows wait", waiting, woken+pausedByHand)
		}
		return nil
	})
}

// wake signals the workflows of all objects of a kind, as the watcher does, and returns how many there are.
func (r *rollout) wake(kind contract.Kind, list client.ObjectList) int {
	r.T.Helper()
	require.NoError(r.T, r.Admin.List(r.T.Context(), list, client.InNamespace(r.Name)))
	require.NoError(r.T, meta.EachListItem(list, func(item runtime.Object) error {
		object := item.(client.Object)
		ref := contract.ObjectRef{Namespace: r.Name, Name: object.GetName(), UID: string(object.GetUID())}
		_, err := r.temporal.SignalWithStartWorkflow(r.T.Context(), contract.WorkflowID(r.ClusterID(), kind, ref),
			contract.SignalChanged, contract.Changed{}, temporalclient.StartWorkflowOptions{
				TaskQueue: kind.TaskQueue(r.ClusterID()), WorkflowTaskTimeout: contract.WorkflowTaskTimeout,
				TypedSearchAttributes: kind.Attributes(r.ClusterID(), ref),
			}, kind.Workflow, contract.ObjectInput{Cluster: r.ClusterID(), Ref: ref})
		return err
	}))
	return meta.LenList(list)
}

// backupID is the ID of a backup's workflow.
func (r *rollout) backupID(name string) string {
	r.T.Helper()
	nab := &oadpv1alpha1.NonAdminBackup{}
	require.NoError(r.T, r.Admin.Get(r.T.Context(), client.ObjectKey{Namespace: r.Name, Name: name}, nab))
	return contract.WorkflowID(r.ClusterID(), contract.KindBackup, contract.ObjectRef{
		Namespace: r.Name, Name: name, UID: string(nab.UID),
	})
}

// complete does what Velero does at the end of a backup, and waits until the object says so.
func (r *rollout) complete(name string) {
	r.T.Helper()
	eventually.IsTrue(r.T, tenants.Patience, "Velero has a Backup of "+name, func() bool { return len(r.Made()[name]) == 1 })
	r.completeMade(r.Made()[name][0].Name)
	r.AwaitEnd(name)
}

// awaitMade waits until so many backups have a Velero Backup.
func (r *rollout) awaitMade(count int) {
	r.T.Helper()
	eventually.IsTrue(r.T, tenants.Patience, fmt.Sprintf("Velero has %d Backups", count), func() bool { return len(r.Made()) == count })
}

func (r *rollout) completeMade(name string) {
	r.T.Helper()
	backup := &velerov1.Backup{}
	require.NoError(r.T, r.Admin.Get(r.T.Context(), client.ObjectKey{Namespace: env.OADPNamespace, Name: name}, backup))
	if backup.Status.Phase == velerov1.BackupPhaseCompleted {
		return
	}
	before, now := client.MergeFrom(backup.DeepCopy()), metav1.Now()
	backup.Spec.StorageLocation = "default"
	if backup.Annotations[holdfastv1alpha1.AnnotationDigests] != "" { // there is no archive of which to record any
		backup.Annotations[holdfastv1alpha1.AnnotationDigests] = holdfastv1alpha1.DigestsRecorded
	}
	backup.Status = velerov1.BackupStatus{
		Version: 1, FormatVersion: "1.1.0", Phase: velerov1.BackupPhaseCompleted, StartTimestamp: &now, CompletionTimestamp: &now,
	}
	require.NoError(r.T, r.Admin.Patch(r.T.Context(), backup, before))
}

// end brings everything to its end: the other controller goes, Velero completes the backups, the rest is deleted.
func (r *rollout) end() {
	r.T.Helper()
	for _, do := range r.opened {
		do()
	}
	location := &velerov1.BackupStorageLocation{}
	require.NoError(r.T, r.Admin.Get(r.T.Context(), client.ObjectKey{Namespace: env.OADPNamespace, Name: "default"}, location))
	location.Status.LastSyncedTime = ptr.To(metav1.Now()) // the collections wait for that
	require.NoError(r.T, r.Admin.Update(r.T.Context(), location))
	var nabs oadpv1alpha1.NonAdminBackupList
	require.NoError(r.T, r.Admin.List(r.T.Context(), &nabs, client.InNamespace(r.Name)))
	r.awaitMade(len(nabs.Items))
	for name, made := range r.Made() {
		assert.Len(r.T, made, 1, name)
		r.completeMade(made[0].Name)
	}
	for i := range nabs.Items {
		r.AwaitEnd(nabs.Items[i].Name)
	}
	r.Await(func(ctx context.Context) error {
		for _, list := range []client.ObjectList{
			&oadpv1alpha1.NonAdminRestoreList{}, &oadpv1alpha1.NonAdminBackupStorageLocationList{}, &holdfastv1alpha1.BackupPlanList{},
			&holdfastv1alpha1.RestoreDrillList{},
			&fdbv1alpha1.FoundationDBBackupList{}, &fdbv1alpha1.FoundationDBRestoreList{}, &fdbv1alpha1.FoundationDBDrillList{},
		} {
			err := r.Admin.List(ctx, list, client.InNamespace(r.Name), client.Limit(1))
			if err == nil && meta.LenList(list) > 0 {
				err = fmt.Errorf("a %T is left", list)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	stay := []string{
		contract.KindVeleroQueue.Workflow, contract.KindFDBCluster.Workflow, contract.KindFDBContainer.Workflow,
		contract.KindHeartbeat.Workflow,
	}
	r.Await(func(context.Context) error {
		open := r.openTypes()
		maps.DeleteFunc(open, func(name string, _ int) bool { return slices.Contains(stay, name) })
		if len(open) > 0 {
			return fmt.Errorf("workflows are open: %v", open)
		}
		return nil
	})
}
