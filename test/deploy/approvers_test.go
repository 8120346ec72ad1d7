package deploy_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
)

type approvalRequest = oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest

const approvers = "storage-approvers" // the group of deploy/samples/approver_binding.yaml

// approvals is an API server with Holdfast's kinds, roles and admission policy, and with nothing that acts.
type approvals struct {
	stack *env.Env
	users map[string]client.Client
}

// On a real API server, by impersonation: who may do what about approvals, who is recorded, and what a restore may bring.
func TestAdmission(t *testing.T) {
	ctx, stack := t.Context(), theJudge(t).stack
	a := &approvals{stack: stack, users: map[string]client.Client{}}
	for user, groups := range map[string][]string{"ann": {approvers}, "bea": {approvers}, "tom": {"tenants"}} {
		a.users[user] = a.clientAs(t, rest.ImpersonationConfig{UserName: user, Groups: groups})
	}
	a.users["admin"] = a.clientAs(t, rest.ImpersonationConfig{})
	a.users["worker"] = a.clientAs(t, rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + env.OADPNamespace + ":" + workerName, Groups: []string{"system:serviceaccounts"},
	})
	a.users["namesake"] = a.clientAs(t, rest.ImpersonationConfig{ // a worker of another namespace, made an approver
		UserName: "system:serviceaccount:" + tenantNamespace + ":" + workerName, Groups: []string{approvers},
	})
	runDocumented(ctx, t, stack, "approver_binding.yaml")
	mustKubectl(ctx, t, stack, env.Admin, "create", "namespace", tenantNamespace)
	mustKubectl(ctx, t, stack, env.Admin, "create", "rolebinding", "tom", "-n", tenantNamespace, "--clusterrole=admin", "--user=tom")
	a.awaitPolicy(ctx, t)

	t.Run("an approver can do nothing else", func(t *testing.T) { a.approverRights(ctx, t) })
	t.Run("a tenant reaches neither approvals nor what is made for it", func(t *testing.T) { a.tenantRights(ctx, t) })
	t.Run("who decided is true", func(t *testing.T) { a.decidedByIsTrue(ctx, t) })
	t.Run("the NetworkPolicy can be laid where Temporal is", func(t *testing.T) { a.protectsTemporal(ctx, t) })
	t.Run("the command decides in the caller's name", func(t *testing.T) { a.commandDecides(ctx, t) })
	t.Run("what a restore from a tenant's location may bring", func(t *testing.T) { judgesRestores(ctx, t, stack) })
}

func (a *approvals) clientAs(t *testing.T, user rest.ImpersonationConfig) client.Client {
	t.Helper()
	config, err := a.stack.RESTConfig(env.Admin)
	require.NoError(t, err)
	config.Impersonate = user
	c, err := client.New(config, client.Options{Scheme: k8s.Scheme()})
	require.NoError(t, err)
	return c
}

// request creates an approval request as the worker does.
func (a *approvals) request(ctx context.Context, t *testing.T, name string) *approvalRequest {
	t.Helper()
	request := &approvalRequest{ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: name}}
	request.Spec.PendingApprovalDecision = oadpv1alpha1.ApprovalDecisionPending
	require.NoError(t, a.users["worker"].Create(ctx, request))
	request.Status.VeleroBackupStorageLocationApprovalRequest = &oadpv1alpha1.VeleroBackupStorageLocationApprovalRequest{
		Namespace: tenantNamespace, Name: name, NACUUID: name,
		PendingSpec: &velerov1.BackupStorageLocationSpec{Provider: "aws", StorageType: velerov1.StorageType{
			ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: "tenant-bucket"},
		}},
	}
	request.Status.ObservedGeneration = request.Generation
	require.NoError(t, a.users["admin"].Status().Update(ctx, request))
	return request
}

// awaitPolicy waits until the API server, which reads policies some time after they are made, has this one and the binding.
func (a *approvals) awaitPolicy(ctx context.Context, t *testing.T) {
	t.Helper()
	probe := a.request(ctx, t, "probe")
	eventually.Succeeds(t, 2*time.Minute, func() error {
		err := a.patch(ctx, "ann", probe, `{"metadata":{"annotations":{"holdfast.dev/decided-by":"nobody"}}}`, client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "holdfast-decided-by") {
			return fmt.Errorf("policy holdfast-decided-by does not refuse it: %w", err)
		}
		return nil
	})
	require.NoError(t, a.users["admin"].Delete(ctx, probe))
}

func (a *approvals) patch(
	ctx context.Context, user string, request *approvalRequest, patch string, options ...client.PatchOption,
) error {
	return a.users[user].Patch(ctx, request.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), options...)
}

// rulesOf lists what a user may do with resources in a namespace, as the API server has worked it out.
func (a *approvals) rulesOf(ctx context.Context, t *testing.T, user, namespace string) []string {
	t.Helper()
	rules, err := a.readRules(ctx, user, namespace)
	require.NoError(t, err)
	return rules
}

// readRules is rulesOf for a wait.
func (a *approvals) readRules(ctx context.Context, user, namespace string) ([]string, error) {
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := a.users[user].Create(ctx, review); err != nil {
		return nil, err
	}
	if review.Status.Incomplete {
		return nil, fmt.Errorf("the rules of %s are incomplete: %s", user, review.Status.EvaluationError)
	}
	rules := map[string]bool{}
	for _, rule := range review.Status.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rules[fmt.Sprintf("%s %s/%s", verb, group, resource)] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(rules)), nil
}

// everybodys are the rights of every authenticated user: to ask about itself.
var everybodys = []string{
	"create authentication.k8s.io/selfsubjectreviews",
	"create authorization.k8s.io/selfsubjectaccessreviews",
	"create authorization.k8s.io/selfsubjectrulesreviews",
}

func (a *approvals) approverRights(ctx context.Context, t *testing.T) {
	requests := "oadp.openshift.io/" + oadpv1alpha1.ResourceApprovalRequests
	assert.ElementsMatch(t, append(slices.Clone(everybodys),
		"get "+requests, "list "+requests, "watch "+requests, "update "+requests, "patch "+requests,
	), a.rulesOf(ctx, t, "ann", env.OADPNamespace))
	assert.ElementsMatch(t, everybodys, a.rulesOf(ctx, t, "ann", tenantNamespace))

	request := a.request(ctx, t, "rights")
	ann, inOADP := a.users["ann"], client.InNamespace(env.OADPNamespace)
	var list oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestList
	require.NoError(t, ann.List(ctx, &list, inOADP))
	assert.NotEmpty(t, list.Items)
	require.NoError(t, ann.Get(ctx, client.ObjectKeyFromObject(request), request))
	require.NoError(t, a.patch(ctx, "ann", request, `{"spec":{"pendingApprovalDecision":"reject"}}`))

	other := &approvalRequest{ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: "own"}}
	status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"lastDecision":{"decision":"approve"}}}`))
	for title, err := range map[string]error{
		"create":                    ann.Create(ctx, other),
		"delete":                    ann.Delete(ctx, request),
		"delete all":                ann.DeleteAllOf(ctx, &approvalRequest{}, inOADP),
		"write the status":          ann.Status().Patch(ctx, request.DeepCopy(), status),
		"list of all namespaces":    ann.List(ctx, &list),
		"list in a tenant's":        ann.List(ctx, &list, client.InNamespace(tenantNamespace)),
		"read Secrets":              ann.List(ctx, &corev1.SecretList{}, inOADP),
		"read ConfigMaps":           ann.List(ctx, &corev1.ConfigMapList{}, inOADP),
		"read Velero's locations":   ann.List(ctx, &velerov1.BackupStorageLocationList{}, inOADP),
		"read Velero's backups":     ann.List(ctx, &velerov1.BackupList{}, inOADP),
		"read a tenant's locations": ann.List(ctx, &oadpv1alpha1.NonAdminBackupStorageLocationList{}, client.InNamespace(tenantNamespace)),
		"read a tenant's Secrets":   ann.List(ctx, &corev1.SecretList{}, client.InNamespace(tenantNamespace)),
		"read namespaces":           ann.List(ctx, &corev1.NamespaceList{}),
		"bind its role to others":   ann.List(ctx, &rbacv1.RoleBindingList{}, inOADP),
	} {
		assert.True(t, apierrors.IsForbidden(err), "%s: %v", title, err)
	}
}

func (a *approvals) tenantRights(ctx context.Context, t *testing.T) {
	eventually.Succeeds(t, 2*time.Minute, func() error { // admin is an aggregated role
		const wanted = "create oadp.openshift.io/nonadminbackupstoragelocations"
		rules, err := a.readRules(ctx, "tom", tenantNamespace)
		if err == nil && !slices.Contains(rules, wanted) {
			err = fmt.Errorf("of %q: no %s", rules, wanted)
		}
		return err
	})
	assert.ElementsMatch(t, everybodys, a.rulesOf(ctx, t, "tom", env.OADPNamespace))
	for _, right := range a.rulesOf(ctx, t, "tom", tenantNamespace) {
		assert.NotContains(t, right, "approvalrequests")
		if _, resource, _ := strings.Cut(right, " "); strings.HasPrefix(resource, "oadp.openshift.io/") {
			assert.NotContains(t, resource, "/status")
		}
	}

	request := a.request(ctx, t, "tenants")
	tom, inOADP := a.users["tom"], client.InNamespace(env.OADPNamespace)
	location := &oadpv1alpha1.NonAdminBackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: "offsite"}}
	location.Spec.BackupStorageLocationSpec = request.Status.VeleroBackupStorageLocationApprovalRequest.PendingSpec.DeepCopy()
	require.NoError(t, tom.Create(ctx, location), "this is what a tenant may do")
	require.NoError(t, tom.List(ctx, &oadpv1alpha1.NonAdminBackupStorageLocationList{}, client.InNamespace(tenantNamespace)))

	own := &approvalRequest{ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: "own"}}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: "more"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"oadp.openshift.io"}, Resources: []string{oadpv1alpha1.ResourceApprovalRequests}, Verbs: []string{"get"},
	}}}
	reach := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: "more"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "holdfast-approver"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "tom"}},
	}
	made := client.ObjectKey{Namespace: env.OADPNamespace, Name: "tenants"} // what is made for a location has the request's name
	for title, err := range map[string]error{
		"see approval requests":         tom.List(ctx, &oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestList{}, inOADP),
		"see its own":                   tom.Get(ctx, made, request.DeepCopy()),
		"approve it":                    a.patch(ctx, "tom", request, `{"spec":{"pendingApprovalDecision":"approve"}}`),
		"delete it":                     tom.Delete(ctx, request),
		"make one":                      tom.Create(ctx, own),
		"write its location's status":   tom.Status().Update(ctx, location.DeepCopy()),
		"see the copy of its Secret":    tom.Get(ctx, made, &corev1.Secret{}),
		"see others'":                   tom.List(ctx, &corev1.SecretList{}, inOADP),
		"see its Velero location":       tom.Get(ctx, made, &velerov1.BackupStorageLocation{}),
		"see Velero's locations":        tom.List(ctx, &velerov1.BackupStorageLocationList{}, inOADP),
		"label its namespace":           tom.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenantNamespace}}, operatorsLabel),
		"give itself the right":         tom.Create(ctx, role),
		"bind itself to the role":       tom.Create(ctx, reach),
		"see the tenants of all others": tom.List(ctx, &oadpv1alpha1.NonAdminBackupStorageLocationList{}),
	} {
		assert.True(t, apierrors.IsForbidden(err), "%s: %v", title, err)
	}
}

// operatorsLabel is what the NetworkPolicy for Temporal asks of a namespace.
var operatorsLabel = client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"holdfast.dev/temporal-access":"operators"}}}`))

// protectsTemporal shows that the documented commands are taken; nothing here enforces a NetworkPolicy.
func (a *approvals) protectsTemporal(ctx context.Context, t *testing.T) {
	mustKubectl(ctx, t, a.stack, env.Admin, "create", "namespace", "temporal")
	runDocumented(ctx, t, a.stack, "temporal_network_policy.yaml")
	var policy networkingv1.NetworkPolicy
	require.NoError(t, a.users["admin"].Get(ctx, client.ObjectKey{Namespace: "temporal", Name: "holdfast-temporal"}, &policy))
	var namespace corev1.Namespace
	require.NoError(t, a.users["admin"].Get(ctx, client.ObjectKey{Name: env.OADPNamespace}, &namespace))
	worker := render(t, inCheckout(t, "deploy", "base")).deployment(t, workerName).Spec.Template.Labels
	assert.True(t, lets(t, &policy, caller{elsewhere: true, namespace: namespace.Labels, pod: worker}, 7233))
	require.NoError(t, a.users["admin"].Get(ctx, client.ObjectKey{Name: "default"}, &namespace))
	assert.True(t, lets(t, &policy, caller{elsewhere: true, namespace: namespace.Labels}, 8080))
}
