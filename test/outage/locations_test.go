package outage_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	temporalclient "go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/workflows/contract"
)

// locationScenarios run with approval required.
var locationScenarios = []scenario{
	{
		name:   "ask for a storage location",
		before: func(*testCase) {},
		act:    (*testCase).locate,
		want:   "pending",
		done:   (*testCase).pending,
		check: func(c *testCase, e effects) {
			assert.Len(c.t, e.Made, 1, "the approval request alone")
		},
		sample:   []string{"worker after signal"},
		recorded: []string{"temporal before local refresh-approval"},
	},
	{
		name:   "approve a storage location",
		before: located,
		act:    func(c *testCase) { c.decide(`{"spec":{"pendingApprovalDecision":"approve"}}`) },
		want:   "available",
		done:   (*testCase).available,
		check: func(c *testCase, e effects) {
			assert.Len(c.t, e.Made, 3)
			assert.Equal(c.t, 1, occurrencesOf(e.Writes, "create backupstoragelocations NAMESPACE-own-UUID"))
			assert.Equal(c.t, 1, occurrencesOf(e.Writes, "create secrets NAMESPACE-own-UUID"))
		},
		sample:    []string{"worker before signal"},
		recorded:  []string{"temporal after local sync-location"},
		rolledOut: []string{outage.Before},
	},
	{
		name:   "approve a storage location through Temporal",
		before: located,
		act:    (*testCase).approveThroughTemporal,
		want:   "available",
		done:   (*testCase).available,
		check: func(c *testCase, e effects) {
			assert.Len(c.t, e.Made, 3)
			assert.Equal(c.t, 2, occurrencesOf(e.Writes,
				"patch nonadminbackupstoragelocationapprovalrequests NAMESPACE-own-UUID"), "decided once, and tidied up")
		},
		sample:   []string{"temporal after regular decide-approval"},
		recorded: []string{"worker before regular decide-approval"},
	},
	{
		name:   "revoke a storage location",
		before: approved,
		act:    func(c *testCase) { c.decide(`{"spec":{"revokeApprovedSpec":true}}`) },
		want:   "pending, and nothing left",
		done:   func(c *testCase) bool { return c.pending() && len(c.madeForLocation()) == 1 },
		check: func(c *testCase, e effects) {
			assert.Contains(c.t, e.Writes, "delete secrets NAMESPACE-own-UUID")
		},
		sample: []string{"worker after local withdraw-location"},
	},
	{
		name: "delete a storage location with a backup in it",
		before: func(c *testCase) {
			approved(c)
			c.backUpInto("own")
			c.await("Completed", c.completed)
		},
		act:  func(c *testCase) { require.NoError(c.t, c.admin.Delete(c.t.Context(), c.location.DeepCopy())) },
		want: "gone, and its backup too",
		done: func(c *testCase) bool { return c.locationGone() && c.gone() },
		check: func(c *testCase, e effects) {
			assert.Equal(c.t, effects{Writes: e.Writes, Files: e.Files}, e, "nothing is left in the cluster")
			assert.NotEmpty(c.t, e.Files, "the data are the tenant's")
		},
		sample:    []string{"temporal after local delete-location"},
		recorded:  []string{"watcher before local refresh-backup"},
		rolledOut: []string{"before local refresh-location"}, // which waits for the backup
	},
}

func occurrencesOf(writes []string, write string) int {
	count := 0
	for _, w := range writes {
		if w == write {
			count++
		}
	}
	return count
}

func located(c *testCase) {
	c.locate()
	c.await("pending", c.pending)
}

func approved(c *testCase) {
	located(c)
	c.decide(`{"spec":{"pendingApprovalDecision":"approve"}}`)
	c.await("available", c.available)
}

// locate creates the case's Secret and NonAdminBackupStorageLocation.
func (c *testCase) locate() {
	c.t.Helper()
	storage := c.stack.Storage()
	require.NoError(c.t, c.admin.Create(c.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "credentials"},
		Data: map[string][]byte{"cloud": fmt.Appendf(nil, "[default]\naws_access_key_id=%s\naws_secret_access_key=%s\n",
			storage.AccessKey, storage.SecretKey)},
	}))
	c.location = &oadpv1alpha1.NonAdminBackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "own"},
		Spec: oadpv1alpha1.NonAdminBackupStorageLocationSpec{BackupStorageLocationSpec: &velerov1.BackupStorageLocationSpec{
			Provider: "aws",
			Config:   map[string]string{"region": storage.Region, "s3ForcePathStyle": "true", "s3Url": storage.Endpoint},
			Credential: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "credentials"}, Key: "cloud",
			},
			StorageType:      velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: storage.Bucket}},
			BackupSyncPeriod: &metav1.Duration{}, // see stopSync
		}},
	}
	require.NoError(c.t, c.admin.Create(c.t.Context(), c.location))
}

func (c *testCase) backUpInto(location string) {
	c.t.Helper()
	c.backUpAs("nightly", func(spec *velerov1.BackupSpec) { spec.StorageLocation = location })
}

// request reads the case's approval request; nil if there is none.
func (c *testCase) request() *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest {
	var list oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestList
	if c.admin.List(context.Background(), &list, client.InNamespace(env.OADPNamespace)) != nil {
		return nil
	}
	for i := range list.Items {
		if list.Items[i].Annotations[oadpv1alpha1.NabslOriginNamespaceAnnotation] == c.namespace {
			return &list.Items[i]
		}
	}
	return nil
}

func (c *testCase) decide(merge string) {
	c.t.Helper()
	request := c.request()
	require.NotNil(c.t, request)
	require.NoError(c.t, c.admin.Patch(c.t.Context(), request, client.RawPatch(types.MergePatchType, []byte(merge))))
}

// approveThroughTemporal sends an Update and, as a client does that lost the answer, the same again.
func (c *testCase) approveThroughTemporal() {
	c.t.Helper()
	request := c.request()
	require.NotNil(c.t, request)
	id := contract.WorkflowID(c.namespace, contract.KindApproval, contract.ObjectRef{
		Namespace: c.namespace, Name: c.location.Name, UID: string(c.location.UID),
	})
	c.poll(patience, func() error {
		ctx, cancel := context.WithTimeout(c.t.Context(), callPatience)
		defer cancel()
		handle, err := c.temporal.UpdateWorkflow(ctx, temporalclient.UpdateWorkflowOptions{
			UpdateID: "the-decision", WorkflowID: id, UpdateName: contract.UpdateDecide,
			WaitForStage: temporalclient.WorkflowUpdateStageCompleted,
			Args: []any{contract.DecisionRequest{
				Decision: contract.DecisionApprove, Reason: "a test", ResourceVersion: request.ResourceVersion,
			}},
		})
		if err != nil {
			return err
		}
		var outcome contract.DecisionOutcome
		if err := handle.Get(ctx, &outcome); err != nil || outcome.State == contract.ApprovalApproved {
			return err
		}
		return fmt.Errorf("the answer to the Update is %+v", outcome)
	})
}

func (c *testCase) readLocation() (*oadpv1alpha1.NonAdminBackupStorageLocation, error) {
	found := &oadpv1alpha1.NonAdminBackupStorageLocation{}
	err := c.admin.Get(context.Background(), client.ObjectKeyFromObject(c.location), found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// pending reports whether location and request say that a decision is awaited, and the request is ready for one.
func (c *testCase) pending() bool {
	found, err := c.readLocation()
	request := c.request()
	if err != nil || found == nil || request == nil || found.Status.Phase != oadpv1alpha1.NonAdminPhaseBackingOff {
		return false
	}
	kind := string(oadpv1alpha1.NonAdminConditionClusterAdminApproved)
	told := meta.FindStatusCondition(found.Status.Conditions, kind)
	asked := meta.FindStatusCondition(request.Status.Conditions, kind)
	return told != nil && told.Reason == oadpv1alpha1.ReasonBSLSpecApprovalPending &&
		asked != nil && asked.Reason == oadpv1alpha1.ReasonBSLSpecApprovalPending &&
		request.Spec.PendingApprovalDecision == oadpv1alpha1.ApprovalDecisionPending && !request.Spec.RevokeApprovedSpec
}

func (c *testCase) available() bool {
	found, err := c.readLocation()
	if err != nil || found == nil || found.Status.Phase != oadpv1alpha1.NonAdminPhaseCreated {
		return false
	}
	made := found.Status.VeleroBackupStorageLocation
	return made != nil && made.Status != nil && made.Status.Phase == velerov1.BackupStorageLocationPhaseAvailable
}

func (c *testCase) locationGone() bool {
	found, err := c.readLocation()
	return err == nil && found == nil
}

func (c *testCase) locationObject() string {
	if c.location == nil {
		return ""
	}
	found, err := c.readLocation()
	require.NoError(c.t, err)
	if found == nil {
		return ""
	}
	slices.SortFunc(found.Status.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return c.plain(asJSON(map[string]any{"finalizers": found.Finalizers, "status": found.Status}))
}

// madeForLocation describes what the OADP namespace holds for the case's location.
func (c *testCase) madeForLocation() []string {
	ctx := context.Background()
	var made []string
	add := func(kind string, object client.Object, content any) {
		if object.GetAnnotations()[oadpv1alpha1.NabslOriginNamespaceAnnotation] == c.namespace {
			made = append(made, c.plain(fmt.Sprintf("%s %s %s", kind, object.GetName(), asJSON(content))))
		}
	}
	in := []client.ListOption{
		client.InNamespace(env.OADPNamespace), client.MatchingLabels{oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue},
	}
	var locations velerov1.BackupStorageLocationList
	require.NoError(c.t, c.admin.List(ctx, &locations, in...))
	for i := range locations.Items {
		add("BackupStorageLocation", &locations.Items[i], locations.Items[i].Spec)
	}
	var secrets corev1.SecretList
	require.NoError(c.t, c.admin.List(ctx, &secrets, in...))
	for i := range secrets.Items {
		add("Secret", &secrets.Items[i], secrets.Items[i].Data)
	}
	if request := c.request(); request != nil {
		request.Status.LastDecision = withoutRun(request.Status.LastDecision)
		add("request", request, map[string]any{"spec": request.Spec, "status": request.Status})
	}
	return made
}

// withoutRun keeps who decided what; when and by which attempt's generation differs from run to run.
func withoutRun(last *oadpv1alpha1.ApprovalRecord) *oadpv1alpha1.ApprovalRecord {
	if last == nil {
		return nil
	}
	return &oadpv1alpha1.ApprovalRecord{
		Decision: last.Decision, DecidedBy: last.DecidedBy, Reason: last.Reason,
		ObservedGeneration: last.ObservedGeneration,
	}
}
