package deploy_test

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

type approvalRequest = oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest

const approvers = "storage-approvers" // the group of deploy/samples/approver_binding.yaml

// approvals is an API server with Holdfast's kinds, roles and admission policy, and with nothing that acts.
type approvals struct {
	stack *env.Env
	users map[string]client.Client
}

// On a real API server, by impersonation: who may do what about approvals, and who is recorded.
func TestApprovals(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real components")
	}
	ctrllog.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // the first build is in it
	defer cancel()
	stack, err := env.Start(ctx, env.Options{Without: []string{env.Velero, env.S3, env.Temporal}, WaitForOthers: true})
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	stack.ReportFailure(t)
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
	mustKubectl(ctx, t, stack, env.Admin, "apply", "-f", inCheckout(t, "deploy", "samples", "approver_binding.yaml"))
	mustKubectl(ctx, t, stack, env.Admin, "create", "namespace", tenantNamespace)
	mustKubectl(ctx, t, stack, env.Admin, "create", "rolebinding", "tom", "-n", tenantNamespace, "--clusterrole=admin", "--user=tom")
	a.awaitPolicy(ctx, t)

	t.Run("an approver can do nothing else", func(t *testing.T) { a.approverRights(ctx, t) })
	t.Run("a tenant reaches neither approvals nor what is made for it", func(t *testing.T) { a.tenantRights(ctx, t) })
	t.Run("who decided is true", func(t *testing.T) { a.decidedByIsTrue(ctx, t) })
	t.Run("the command decides in the caller's name", func(t *testing.T) { a.commandDecides(ctx, t) })
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
	require.Eventually(t, func() bool {
		err := a.patch(ctx, "ann", probe, `{"metadata":{"annotations":{"holdfast.dev/decided-by":"nobody"}}}`, client.DryRunAll)
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "holdfast-decided-by")
	}, time.Minute, 200*time.Millisecond)
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
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	require.NoError(t, a.users[user].Create(ctx, review))
	require.False(t, review.Status.Incomplete)
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
	return slices.Sorted(maps.Keys(rules))
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
	require.Eventually(t, func() bool { // admin is an aggregated role
		return slices.Contains(a.rulesOf(ctx, t, "tom", tenantNamespace), "create oadp.openshift.io/nonadminbackupstoragelocations")
	}, time.Minute, 200*time.Millisecond)
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

// change is a patch by somebody.
type change struct{ user, patch string }

func (a *approvals) decidedByIsTrue(ctx context.Context, t *testing.T) {
	const (
		approve  = `{"spec":{"pendingApprovalDecision":"approve"}}`
		reject   = `{"spec":{"pendingApprovalDecision":"reject"}}`
		temporal = `{"metadata":{"annotations":{"holdfast.dev/decided-by-temporal-identity":"carl@cli","holdfast.dev/decision-id":"1"}},` +
			`"spec":{"pendingApprovalDecision":"reject"}}`
		reset = `{"metadata":{"annotations":{"holdfast.dev/decided-by":null,"holdfast.dev/decided-by-temporal-identity":null,` +
			`"holdfast.dev/decision-id":null}},"spec":{"pendingApprovalDecision":"pending","revokeApprovedSpec":false}}`
		unsigned = `{"metadata":{"annotations":{"holdfast.dev/decided-by":null}},"spec":{"pendingApprovalDecision":"reject"}}`
	)
	by := func(user, decision string) string {
		return `{"metadata":{"annotations":{"holdfast.dev/decided-by":"` + user + `"}},"spec":{"pendingApprovalDecision":"` + decision + `"}}`
	}
	annotate := func(key, value string) string { return `{"metadata":{"annotations":{"` + key + `":` + value + `}}}` }
	const ownName = `annotation holdfast.dev/decided-by can only be set to your own username, `
	tests := map[string]struct {
		earlier []change
		change  change
		want    string // of the refusal; none if empty
	}{
		"a plain edit":                       {nil, change{"ann", approve}, ""},
		"in one's own name":                  {nil, change{"ann", by("ann", "approve")}, ""},
		"in another's name":                  {nil, change{"ann", by("bea", "approve")}, ownName + "ann; set it to that or remove it"},
		"an administrator of the cluster":    {nil, change{"admin", by("ann", "approve")}, ownName + "admin"},
		"the worker in somebody's name":      {nil, change{"worker", by("ann", "approve")}, ownName},
		"in nobody's name":                   {nil, change{"ann", by("", "approve")}, ownName},
		"after another, in one's own name":   {[]change{{"bea", by("bea", "approve")}}, change{"ann", by("ann", "reject")}, ""},
		"the same person again":              {[]change{{"ann", by("ann", "approve")}}, change{"ann", reject}, ""},
		"after another, whose name stays":    {[]change{{"bea", by("bea", "approve")}}, change{"ann", reject}, "names bea, who made an earlier decision; in the same change, set it to ann or remove it"},
		"after another, whose name goes":     {[]change{{"bea", by("bea", "approve")}}, change{"ann", unsigned}, ""},
		"the worker, and the name stays":     {[]change{{"bea", by("bea", "approve")}}, change{"worker", `{"spec":{"pendingApprovalDecision":"pending"}}`}, "names bea"},
		"the worker sets it back":            {[]change{{"bea", by("bea", "approve")}}, change{"worker", reset}, ""},
		"to take over another's decision":    {[]change{{"bea", by("bea", "approve")}}, change{"ann", annotate("holdfast.dev/decided-by", `"ann"`)}, "can only be set together with a decision"},
		"to take over an unsigned decision":  {[]change{{"bea", approve}}, change{"ann", annotate("holdfast.dev/decided-by", `"ann"`)}, "can only be set together with a decision"},
		"to take one's name off":             {[]change{{"bea", by("bea", "approve")}}, change{"bea", annotate("holdfast.dev/decided-by", "null")}, ""},
		"a label, whoever decided":           {[]change{{"bea", by("bea", "approve")}}, change{"ann", `{"metadata":{"labels":{"a":"b"}}}`}, ""},
		"the worker for Temporal":            {nil, change{"worker", temporal}, ""},
		"a person for Temporal":              {nil, change{"ann", temporal}, "can only be set by holdfast-worker"},
		"a namesake of the worker":           {nil, change{"namesake", temporal}, "can only be set by holdfast-worker"},
		"the mark of a Temporal decision":    {nil, change{"ann", annotate("holdfast.dev/decision-id", `"2"`)}, "can only be set by holdfast-worker"},
		"another Temporal identity":          {[]change{{"worker", temporal}}, change{"ann", annotate("holdfast.dev/decided-by-temporal-identity", `"dora"`)}, "can only be set by holdfast-worker"},
		"after Temporal, which stays":        {[]change{{"worker", temporal}}, change{"ann", approve}, "speaks of an earlier decision; remove it in the same change"},
		"after Temporal, signed, it stays":   {[]change{{"worker", temporal}}, change{"ann", by("ann", "approve")}, "speaks of an earlier decision"},
		"after Temporal, which goes":         {[]change{{"worker", temporal}}, change{"ann", strings.Replace(reset, "pending", "approve", 1)}, ""},
		"a revocation counts as a decision":  {[]change{{"bea", by("bea", "approve")}}, change{"ann", `{"spec":{"revokeApprovedSpec":true}}`}, "names bea"},
		"whoever writes, other marks remain": {[]change{{"worker", temporal}}, change{"ann", `{"metadata":{"annotations":{"example.com/a":"b"}}}`}, ""},
	}
	number := 0
	for title, test := range tests {
		number++
		request := a.request(ctx, t, fmt.Sprintf("decided-by-%d", number))
		t.Run(title, func(t *testing.T) {
			for _, earlier := range test.earlier {
				require.NoError(t, a.patch(ctx, earlier.user, request, earlier.patch))
			}
			err := a.patch(ctx, test.change.user, request, test.change.patch)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			assert.ErrorContains(t, err, test.want)
		})
	}
	t.Run("a request is not born decided", func(t *testing.T) {
		born := &approvalRequest{ObjectMeta: metav1.ObjectMeta{
			Namespace: env.OADPNamespace, Name: "born", Annotations: map[string]string{"holdfast.dev/decided-by": "ann"},
		}}
		require.ErrorContains(t, a.users["admin"].Create(ctx, born), ownName)
		born.Annotations["holdfast.dev/decided-by"] = "admin"
		require.ErrorContains(t, a.users["admin"].Create(ctx, born), "can only be set together with a decision")
		born.Spec.PendingApprovalDecision = oadpv1alpha1.ApprovalDecisionApprove
		require.NoError(t, a.users["admin"].Create(ctx, born))
	})
	t.Run("kubectl shows the message", func(t *testing.T) {
		_, err := kubectl(ctx, t, a.stack, env.Admin, "annotate", "nabslapprovalrequest", "-n", env.OADPNamespace, "born", "--overwrite",
			"holdfast.dev/decided-by=ann")
		require.ErrorContains(t, err, ownName+"admin; set it to that or remove it")
	})
}

// commandDecides runs the real command with nothing but an approver's rights, and writes what the worker would.
func (a *approvals) commandDecides(ctx context.Context, t *testing.T) {
	binaries, err := tools.BuildHoldfast(ctx, nil)
	require.NoError(t, err)
	config, err := clientcmd.LoadFromFile(a.stack.Kubeconfig(env.Admin))
	require.NoError(t, err)
	for _, user := range config.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = "ann", []string{approvers}
	}
	kubeconfig := filepath.Join(t.TempDir(), "ann.kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))
	run := func(args ...string) (string, error) {
		command := exec.CommandContext(ctx, binaries["holdfast"], append(args, "--kubeconfig", kubeconfig)...)
		command.Env = []string{"TEMPORAL_ADDRESS=127.0.0.1:1"} // nobody is there
		output, err := command.CombinedOutput()
		return string(output), err
	}
	request := a.request(ctx, t, "vault")
	where := tenantNamespace + "/vault"

	listed, err := run("list", "approvals", "-n", tenantNamespace)
	require.NoError(t, err, listed)
	assert.Regexp(t, tenantNamespace+` +vault +pending +tenant-bucket +\d+s +`+request.ResourceVersion, listed)
	assert.Contains(t, listed, "+ objectStorage.bucket: tenant-bucket")

	output, err := run("approve", where, "--reason", "too early", "--resource-version", "1")
	require.Error(t, err)
	assert.Contains(t, output, where+": changed since version 1: look again with holdfast list approvals")

	output, err = run("approve", where, "--reason", "ticket 4711", "--resource-version", request.ResourceVersion, "--timeout", "2s")
	require.Error(t, err, "there is no worker")
	assert.Contains(t, output, "the decision is stored, and will be acted on, but was not yet")
	require.NoError(t, a.users["admin"].Get(ctx, client.ObjectKeyFromObject(request), request))
	assert.Equal(t, oadpv1alpha1.ApprovalDecisionApprove, request.Spec.PendingApprovalDecision)
	assert.Equal(t, "ann", request.Annotations[oadpv1alpha1.DecidedByAnnotation])
	assert.Equal(t, "ticket 4711", request.Annotations[oadpv1alpha1.ApprovalReasonAnnotation])

	done := make(chan error, 1)
	go func() { done <- a.actOnRejection(ctx, client.ObjectKeyFromObject(request)) }()
	output, err = run("reject", where, "--reason", "on second thought", "--timeout", "5m")
	require.NoError(t, err, output)
	assert.Contains(t, output, "Decided by:  ann")
	assert.Contains(t, output, "\n"+where+": rejected\n")
	require.NoError(t, <-done)
}

// actOnRejection waits for the decision and writes the status that says that it was acted on.
func (a *approvals) actOnRejection(ctx context.Context, key client.ObjectKey) error {
	for {
		request := &approvalRequest{}
		if err := a.users["admin"].Get(ctx, key, request); err != nil {
			return err
		}
		if request.Spec.PendingApprovalDecision == oadpv1alpha1.ApprovalDecisionReject {
			request.Status.ObservedGeneration = request.Generation
			request.Status.LastDecision = &oadpv1alpha1.ApprovalRecord{
				Decision: "reject", DecidedBy: request.Annotations[oadpv1alpha1.DecidedByAnnotation], DecidedAt: metav1.Now(),
				ObservedGeneration: request.Generation,
			}
			request.Status.Conditions = []metav1.Condition{{
				Type: "ClusterAdminApproved", Status: "False", Reason: oadpv1alpha1.ReasonBSLSpecRejected, LastTransitionTime: metav1.Now(),
			}}
			return a.users["admin"].Status().Update(ctx, request)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
