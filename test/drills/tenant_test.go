package drills_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	enumspb "go.temporal.io/api/enums/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

const patience = 10 * time.Minute

// tenant acts in one namespace with nothing but its own rights.
type tenant struct {
	t         *testing.T
	namespace string
	client    client.WithWatch
}

func newTenant(t *testing.T, user string) *tenant {
	t.Helper()
	namespace := fmt.Sprintf("%s-%06x", user, rand.IntN(1<<24))
	require.NoError(t, stack.CreateTenant(t.Context(), namespace, user))
	rights, err := stack.UserClient(user)
	require.NoError(t, err)
	return &tenant{t: t, namespace: namespace, client: rights}
}

func (x *tenant) create(objects ...client.Object) {
	x.t.Helper()
	for _, object := range objects {
		object.SetNamespace(x.namespace)
		require.NoError(x.t, x.client.Create(x.t.Context(), object))
	}
}

// workload is a Deployment that Pod Security level restricted allows.
func workload(name, image string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
					Containers: []corev1.Container{{Name: "main", Image: image, SecurityContext: &corev1.SecurityContext{
						AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
					}}},
				},
			},
		},
	}
}

func service(name string, kind corev1.ServiceType) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Type: kind, Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": name}}
}

// backUp takes a backup of the namespace, again if Velero took it up twice and failed it.
func (x *tenant) backUp(name string) {
	x.t.Helper()
	for !x.completes(name) {
		nab := &oadpv1alpha1.NonAdminBackup{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name}}
		forced := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"forceDeleteBackup":true}}`))
		require.NoError(x.t, x.client.Patch(x.t.Context(), nab, forced))
		eventually.IsTrue(x.t, patience, fmt.Sprintf("backup %s/%s is gone", x.namespace, name), func() bool {
			return apierrors.IsNotFound(x.client.Get(context.Background(), client.ObjectKeyFromObject(nab), nab))
		})
	}
}

// completes takes a backup and reports whether Velero has completed it; false if it took it up twice.
func (x *tenant) completes(name string) bool {
	x.t.Helper()
	nab := &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: oadpv1alpha1.NonAdminBackupSpec{BackupSpec: &velerov1.BackupSpec{
			SnapshotVolumes: ptr.To(false), DefaultVolumesToFsBackup: ptr.To(false),
		}},
	}
	x.create(nab)
	eventually.Succeeds(x.t, patience, func() error {
		err := x.client.Get(context.Background(), client.ObjectKeyFromObject(nab), nab)
		made := nab.Status.VeleroBackup
		completed := made != nil && made.Status != nil && made.Status.Phase == velerov1.BackupPhaseCompleted
		if err == nil && !completed && !env.TakenUpTwice(made) {
			err = fmt.Errorf("backup %s/%s has not completed: %+v, of Velero: %+v", x.namespace, name, nab.Status, made)
		}
		return err
	})
	return !env.TakenUpTwice(nab.Status.VeleroBackup)
}

func (x *tenant) drill(name, backup string, changes ...func(*holdfastv1alpha1.RestoreDrillSpec)) *holdfastv1alpha1.RestoreDrill {
	x.t.Helper()
	drill := &holdfastv1alpha1.RestoreDrill{ObjectMeta: metav1.ObjectMeta{Name: name}}
	drill.Spec.BackupName = backup
	for _, change := range changes {
		change(&drill.Spec)
	}
	x.create(drill)
	return drill
}

func lasting(timeout string) func(*holdfastv1alpha1.RestoreDrillSpec) {
	return func(spec *holdfastv1alpha1.RestoreDrillSpec) { spec.Timeout = timeout }
}

// await waits until the drill is as wished, and returns it.
func (x *tenant) await(drill *holdfastv1alpha1.RestoreDrill, want string, ok func(*holdfastv1alpha1.RestoreDrillStatus) bool,
) *holdfastv1alpha1.RestoreDrill {
	x.t.Helper()
	now := &holdfastv1alpha1.RestoreDrill{}
	eventually.Succeeds(x.t, patience, func() error {
		err := x.client.Get(context.Background(), client.ObjectKeyFromObject(drill), now)
		if err == nil && !ok(&now.Status) {
			err = fmt.Errorf("drill %s/%s, not yet: %s: %+v", drill.Namespace, drill.Name, want, now.Status)
		}
		return err
	})
	return now
}

func (x *tenant) awaitEnd(drill *holdfastv1alpha1.RestoreDrill) *holdfastv1alpha1.RestoreDrill {
	x.t.Helper()
	ended := x.await(drill, "ends", func(s *holdfastv1alpha1.RestoreDrillStatus) bool { return s.Phase == holdfastv1alpha1.DrillEnded })
	requireNothingLeft(x.t, ended)
	return ended
}

// discard deletes a drill that is not over, and waits until nothing is left of it.
func (x *tenant) discard(drill *holdfastv1alpha1.RestoreDrill) {
	x.t.Helper()
	require.NoError(x.t, x.client.Delete(x.t.Context(), drill.DeepCopy()))
	place := drill.Status.Namespace
	for _, made := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: place}},
		&velerov1.Restore{ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: place}},
	} {
		eventually.IsTrue(x.t, patience, fmt.Sprintf("%T %s goes", made, place), func() bool {
			return apierrors.IsNotFound(admin.Get(context.Background(), client.ObjectKeyFromObject(made), made))
		})
	}
	requireNothingLeft(x.t, drill)
}

// requireNothingLeft: neither a namespace nor a Velero Restore nor a ConfigMap of the drill exists, and its workflow is over.
func requireNothingLeft(t *testing.T, drill *holdfastv1alpha1.RestoreDrill) {
	t.Helper()
	name := owner.DrillName(stack.ClusterID(), drill.UID)
	for _, made := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&velerov1.Restore{ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: name}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: name}},
	} {
		err := admin.Get(t.Context(), client.ObjectKeyFromObject(made), made)
		require.True(t, apierrors.IsNotFound(err), "%T %s: %v", made, name, err)
	}
	id := contract.WorkflowID(stack.ClusterID(), contract.KindDrill, contract.ObjectRef{
		Namespace: drill.Namespace, Name: drill.Name, UID: string(drill.UID),
	})
	eventually.IsTrue(t, patience, fmt.Sprintf("workflow %s completes", id), func() bool {
		described, err := temporal.DescribeWorkflowExecution(context.Background(), id, "")
		return err == nil && described.WorkflowExecutionInfo.Status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	})
}

// awaitVerdict waits until a backup shows the verdict of its drill.
func (x *tenant) awaitVerdict(backup string, want metav1.ConditionStatus) {
	x.t.Helper()
	eventually.IsTrue(x.t, patience, fmt.Sprintf("backup %s has the verdict %s", backup, want), func() bool {
		nab := &oadpv1alpha1.NonAdminBackup{}
		err := x.client.Get(context.Background(), client.ObjectKey{Namespace: x.namespace, Name: backup}, nab)
		return err == nil && nab.Status.LastDrill != nil &&
			meta.IsStatusConditionPresentAndEqual(nab.Status.Conditions, string(oadpv1alpha1.NonAdminConditionVerified), want)
	})
}

func verified(t *testing.T, drill *holdfastv1alpha1.RestoreDrill) *metav1.Condition {
	t.Helper()
	condition := meta.FindStatusCondition(drill.Status.Conditions, holdfastv1alpha1.ConditionVerified)
	require.NotNil(t, condition)
	return condition
}

// findings are all findings, a line each.
func findings(drill *holdfastv1alpha1.RestoreDrill) string {
	var all []string
	for _, finding := range drill.Status.Findings {
		all = append(all, finding.Message)
	}
	return strings.Join(all, "\n")
}

// fingerprint is what there is in a namespace, with versions; not Events, Leases and what the status of a backup shows.
func (x *tenant) fingerprint() (all []string) {
	x.t.Helper()
	for _, list := range []client.ObjectList{
		&corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.ServiceList{}, &corev1.PodList{}, &appsv1.DeploymentList{},
		&rbacv1.RoleBindingList{}, &networkingv1.NetworkPolicyList{}, &discoveryv1.EndpointSliceList{},
		&corev1.EndpointsList{},
	} {
		require.NoError(x.t, admin.List(x.t.Context(), list, client.InNamespace(x.namespace)))
		objects, err := meta.ExtractList(list)
		require.NoError(x.t, err)
		for _, object := range objects {
			is := object.(client.Object)
			all = append(all, fmt.Sprintf("%T %s %s", object, is.GetName(), is.GetResourceVersion()))
		}
	}
	return all
}
