package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
)

// veleroUser is the service account by which Velero acts.
const veleroUser = "velero"

// judged is a request of Velero's, which the API server only tries.
type judged struct {
	object string // JSON, without metadata
	meta   string // more metadata, JSON
	in     string // namespace; the tenant's if empty, cluster-scoped if "-"
	want   string // of the refusal; none if empty
}

const planJSON = `{"apiVersion":"holdfast.dev/v1alpha1","kind":"BackupPlan","spec":{"schedule":"0 2 * * *","template":{"spec":{"backupSpec":{}}}}}`

const podJSON = `{"apiVersion":"v1","kind":"Pod","spec":`

// judgesRestores tries what Velero may create of a restore from a tenant's location, as policy holdfast-restores says it.
func judgesRestores(ctx context.Context, t *testing.T, stack *env.Env) {
	velero, err := stack.UserClient(veleroUser)
	require.NoError(t, err)
	for _, level := range []string{"restricted", "privileged"} {
		namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		namespace.SetName(level)
		namespace.SetLabels(map[string]string{"pod-security.kubernetes.io/enforce": level})
		require.NoError(t, stack.Client().Create(ctx, namespace))
	}
	const (
		toCreate = "/holdfast-restores, which has the rights of a tenant, may not create it"
		noKind   = "such a restore does not bring this kind"
		within   = "such a restore stays within namespace " + tenantNamespace
		config   = `{"apiVersion":"v1","kind":"ConfigMap"}`
		plain    = podJSON + `{"containers":[{"name":"c","image":"i:1"}]}}`
		hardened = podJSON + `{"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},"volumes":[` +
			`{"name":"v","emptyDir":{}}],"containers":[{"name":"c","image":"i:1","securityContext":` +
			`{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"],"add":["NET_BIND_SERVICE"]}}}]}}`
		root = podJSON + `{"containers":[{"name":"c","image":"i:1","securityContext":{"privileged":true}}]}}`
	)
	for title, test := range map[string]judged{
		"a ConfigMap":         {object: config},
		"a Secret":            {object: `{"apiVersion":"v1","kind":"Secret"}`},
		"a ServiceAccount":    {object: `{"apiVersion":"v1","kind":"ServiceAccount"}`},
		"a claim":             {object: `{"apiVersion":"v1","kind":"PersistentVolumeClaim","spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`},
		"a RoleBinding":       {object: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}}`, want: noKind},
		"a quota":             {object: `{"apiVersion":"v1","kind":"ResourceQuota"}`, want: noKind},
		"a limit range":       {object: `{"apiVersion":"v1","kind":"LimitRange","spec":{"limits":[]}}`, want: noKind},
		"a NetworkPolicy":     {object: `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","spec":{"podSelector":{}}}`, want: noKind},
		"Endpoints":           {object: `{"apiVersion":"v1","kind":"Endpoints"}`, want: noKind},
		"an EndpointSlice":    {object: `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","addressType":"IPv4","endpoints":[]}`, want: noKind},
		"a request to us":     {object: `{"apiVersion":"oadp.openshift.io/v1alpha1","kind":"NonAdminBackup","spec":{"backupSpec":{}}}`, want: noKind},
		"a database's backup": {object: `{"apiVersion":"fdb.holdfast.dev/v1alpha1","kind":"FoundationDBRestore","spec":{"destinationClusterName":"app","backupName":"app","desiredState":"Running"}}`, want: noKind},
		"a plan":              {object: planJSON},
		"Velero's own":        {object: `{"apiVersion":"velero.io/v1","kind":"Backup","spec":{}}`, want: noKind},
		"a Lease":             {object: `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease"}`},
		"a ControllerRevision": {
			object: `{"apiVersion":"apps/v1","kind":"ControllerRevision","revision":1,"data":{"a":1}}`,
			want:   "service account " + env.OADPNamespace + toCreate,
		},
		"in another namespace":          {object: config, in: "default", want: " in namespace default cannot be restored from a NonAdminBackupStorageLocation: " + within},
		"a Secret in another namespace": {object: `{"apiVersion":"v1","kind":"Secret"}`, in: "kube-system", want: within},
		"a Namespace":                   {object: `{"apiVersion":"v1","kind":"Namespace"}`, in: "-", want: within},
		"a ClusterRoleBinding": {
			object: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}}`,
			in:     "-", want: within,
		},
		"of an earlier restore, from elsewhere": {object: config, in: "default", meta: `{"labels":{"velero.io/restore-name":"another"}}`},
		"of no restore":                         {object: config, in: "default", meta: `{"annotations":{"holdfast.dev/restored-by":null}}`},
		"whose mark names another Velero":       {object: config, in: "default", meta: `{"annotations":{"holdfast.dev/restored-by":"velero/probe"}}`},

		"a Pod":                            {object: plain},
		"a privileged Pod":                 {object: root, want: "Pod Security level baseline of the namespace does not allow privileged containers"},
		"a Pod by OpenShift's restricted":  {object: plain, meta: `{"annotations":{"openshift.io/scc":"restricted-v2"}}`},
		"a Pod by OpenShift's privileged":  {object: plain, meta: `{"annotations":{"openshift.io/scc":"privileged"}}`, want: "it needs SecurityContextConstraints privileged"},
		"a Pod for a restricted namespace": {object: hardened, in: "restricted", meta: `{"annotations":{"holdfast.dev/restored-into":"restricted"}}`},
		"a privileged Pod where it may be": {object: root, in: "privileged", meta: `{"annotations":{"holdfast.dev/restored-into":"privileged"}}`},
	} {
		t.Run(title, func(t *testing.T) { test.judge(ctx, t, velero) })
	}
	for control, spec := range beyondBaseline {
		t.Run("a Pod with "+control, func(t *testing.T) {
			judged{object: podJSON + spec + "}", want: control}.judge(ctx, t, velero)
		})
	}
	for control, spec := range withinBaseline {
		t.Run("a Pod with an allowed "+control, func(t *testing.T) { judged{object: podJSON + spec + "}"}.judge(ctx, t, velero) })
	}
	setSwitches(ctx, t, stack, velero, map[string]string{"defaultPodSecurityLevel": "'restricted'", "allowSnapshotSecrets": "true"})
	for title, test := range map[string]judged{
		"a plain Pod where levels are restricted": {
			object: plain, want: "Pod Security level restricted of the namespace does not allow privilege escalation, running as root, " +
				"no seccomp profile, capabilities",
		},
		"a hardened Pod where levels are restricted": {object: hardened},
		"a hardened Pod with a kind of volume too much": {
			object: strings.Replace(hardened, `"emptyDir":{}`, `"nfs":{"server":"x","path":"/"}`, 1), want: "does not allow kinds of volumes",
		},
		"a snapshot's Secret":               {object: `{"apiVersion":"v1","kind":"Secret"}`, in: "kube-system"},
		"a token that a snapshot names":     {object: `{"apiVersion":"v1","kind":"Secret","type":"bootstrap.kubernetes.io/token"}`, in: "kube-system", want: within},
		"a ConfigMap that a snapshot names": {object: config, in: "kube-system", want: within},
	} {
		t.Run(title, func(t *testing.T) { test.judge(ctx, t, velero) })
	}
	t.Run("a status", func(t *testing.T) { judgesStatus(ctx, t, stack, velero) })
	t.Run("an update by a role that may only create", func(t *testing.T) { judgesUpdates(ctx, t, stack, velero) })
	t.Run("others are not judged", func(t *testing.T) {
		judged{object: root, in: "default"}.judge(ctx, t, stack.Client())
	})
}

// container wraps what a container of a Pod says.
func container(says string) string { return `{"containers":[{"name":"c","image":"i:1",` + says + `}]}` }

func hardening(says string) string { return container(`"securityContext":{` + says + `}`) }

func pod(says string) string { return `{"containers":[{"name":"c","image":"i:1"}],` + says + `}` }

var beyondBaseline = map[string]string{
	"host namespaces":                pod(`"hostPID":true`),
	"privileged containers":          pod(`"initContainers":[{"name":"i","image":"i:1","securityContext":{"privileged":true}}]`),
	"host processes":                 `{"os":{"name":"windows"},"hostNetwork":true,"securityContext":{"windowsOptions":{"hostProcess":true,"runAsUserName":"x"}},"containers":[{"name":"c","image":"i:1"}]}`,
	"capabilities":                   hardening(`"capabilities":{"add":["SYS_ADMIN"]}`),
	"hostPath volumes":               pod(`"volumes":[{"name":"v","hostPath":{"path":"/"}}]`),
	"host ports":                     container(`"ports":[{"containerPort":80,"hostPort":80}]`),
	"probes of other hosts":          container(`"livenessProbe":{"httpGet":{"host":"10.0.0.1","port":80}}`),
	"an unconfined AppArmor profile": pod(`"securityContext":{"appArmorProfile":{"type":"Unconfined"}}`),
	"SELinux options":                pod(`"securityContext":{"seLinuxOptions":{"type":"spc_t"}}`),
	"a proc mount":                   `{"hostUsers":false,"containers":[{"name":"c","image":"i:1","securityContext":{"procMount":"Unmasked"}}]}`,
	"an unconfined seccomp profile":  hardening(`"seccompProfile":{"type":"Unconfined"}`),
	"sysctls":                        pod(`"securityContext":{"sysctls":[{"name":"kernel.msgmax","value":"1"}]}`),
}

var withinBaseline = map[string]string{
	"capability":       hardening(`"capabilities":{"add":["CHOWN"]}`),
	"port":             container(`"ports":[{"containerPort":80}]`),
	"probe":            container(`"livenessProbe":{"httpGet":{"port":80}},"lifecycle":{"preStop":{"tcpSocket":{"port":80}}}`),
	"AppArmor profile": pod(`"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}}`),
	"SELinux option":   pod(`"securityContext":{"seLinuxOptions":{"type":"container_t","level":"s0:c1,c2"}}`),
	"sysctl":           pod(`"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_syncookies","value":"1"}]}`),
	"seccomp profile":  hardening(`"seccompProfile":{"type":"RuntimeDefault"}`),
	"volume":           pod(`"volumes":[{"name":"v","configMap":{"name":"x"}},{"name":"e","emptyDir":{}}]`),
}

// marked returns the object as Velero restores it.
func (j judged) marked(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(j.object), &object))
	object["metadata"] = map[string]any{
		"name": "restored", "labels": map[string]any{"velero.io/restore-name": "probe"},
		"annotations": map[string]any{
			"holdfast.dev/restored-into": tenantNamespace, "holdfast.dev/restored-by": env.OADPNamespace + "/probe",
		},
	}
	if j.meta != "" {
		var more map[string]map[string]*string
		require.NoError(t, json.Unmarshal([]byte(j.meta), &more))
		for part, entries := range more {
			into := object["metadata"].(map[string]any)[part].(map[string]any)
			for key, value := range entries {
				if value == nil {
					delete(into, key)
					continue
				}
				into[key] = *value
			}
		}
	}
	made := &unstructured.Unstructured{Object: object}
	switch j.in {
	case "-":
	case "":
		made.SetNamespace(tenantNamespace)
	default:
		made.SetNamespace(j.in)
	}
	return made
}

func (j judged) judge(ctx context.Context, t *testing.T, by client.Client) {
	t.Helper()
	err := by.Create(ctx, j.marked(t), client.DryRunAll)
	if j.want == "" {
		require.NoError(t, err)
		return
	}
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "holdfast-restores")
	require.ErrorContains(t, err, j.want)
}

// setSwitches changes variables of the policy, as docs/operators.md says it, and waits until the API server knows.
func setSwitches(ctx context.Context, t *testing.T, stack *env.Env, velero client.Client, values map[string]string) {
	t.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	require.NoError(t, stack.Client().Get(ctx, client.ObjectKey{Name: "holdfast-restores"}, policy))
	for i, variable := range policy.Spec.Variables {
		if value, ok := values[variable.Name]; ok {
			policy.Spec.Variables[i].Expression = value
		}
	}
	require.NoError(t, stack.Client().Update(ctx, policy))
	secret := judged{object: `{"apiVersion":"v1","kind":"Secret"}`, in: "default"}
	// The API server reads policies some time after they are written.
	eventually.Succeeds(t, 2*time.Minute, func() error { return velero.Create(ctx, secret.marked(t), client.DryRunAll) })
}

// judgesStatus: no status is restored, and what was there unmarked is judged when a restore changes it.
func judgesStatus(ctx context.Context, t *testing.T, stack *env.Env, velero client.Client) {
	service := judged{object: `{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer","ports":[{"port":80}]}}`}.marked(t)
	require.NoError(t, velero.Create(ctx, service))
	t.Cleanup(func() { require.NoError(t, stack.Client().Delete(context.Background(), service)) })
	require.NoError(t, unstructured.SetNestedSlice(service.Object, []any{map[string]any{"ip": "10.0.0.1"}}, "status", "loadBalancer", "ingress"))
	require.ErrorContains(t, velero.Status().Update(ctx, service), "status of services restored cannot be restored")

	plan := judged{object: planJSON}.marked(t)
	require.NoError(t, velero.Create(ctx, plan))
	t.Cleanup(func() { require.NoError(t, stack.Client().Delete(context.Background(), plan)) })
	worker, err := stack.UserClient(env.HoldfastWorker)
	require.NoError(t, err)
	served := client.RawPatch(types.MergePatchType, []byte(`{"status":{"handledRunNow":"1"}}`))
	require.ErrorContains(t, velero.Status().Patch(ctx, plan.DeepCopy(), served), "status of backupplans")
	require.NoError(t, worker.Status().Patch(ctx, plan.DeepCopy(), served), "the worker serves what is restored")

	pod := judged{object: podJSON + container(`"stdin":false`) + "}"}.marked(t)
	pod.SetLabels(map[string]string{"velero.io/restore-name": "earlier"})
	pod.SetAnnotations(map[string]string{"holdfast.dev/restored-by": env.OADPNamespace + "/earlier"})
	require.NoError(t, stack.Client().Create(ctx, pod))
	t.Cleanup(func() {
		require.NoError(t, stack.Client().Delete(context.Background(), pod, client.GracePeriodSeconds(0)))
	})
	escaped := `{"metadata":{"annotations":{"holdfast.dev/restored-into":"elsewhere","holdfast.dev/restored-by":"` +
		env.OADPNamespace + `/probe"}}}`
	err = velero.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(escaped)))
	require.ErrorContains(t, err, "such a restore stays within namespace elsewhere", "a mark that is new, whatever the label")
}

// judgesUpdates: what was there before the restore is changed only by who may change it.
func judgesUpdates(ctx context.Context, t *testing.T, stack *env.Env, velero client.Client) {
	rules := []rbacv1.PolicyRule{{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "creates-only"}, Rules: rules}
	require.NoError(t, stack.Client().Create(ctx, role))
	binding := &rbacv1.ClusterRoleBinding{}
	require.NoError(t, stack.Client().Get(ctx, client.ObjectKey{Name: "holdfast-restores"}, binding))
	require.NoError(t, stack.Client().Delete(ctx, binding)) // its roleRef cannot be changed
	binding = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: binding.Name}, Subjects: binding.Subjects, RoleRef: binding.RoleRef}
	binding.RoleRef.Name = role.Name
	require.NoError(t, stack.Client().Create(ctx, binding))

	restored := judged{object: `{"apiVersion":"v1","kind":"ConfigMap"}`}.marked(t)
	secret := judged{object: `{"apiVersion":"v1","kind":"Secret"}`}.marked(t)
	eventually.Succeeds(t, 2*time.Minute, func() error { // the authorizer reads bindings some time after they are written
		err := velero.Create(ctx, restored.DeepCopy(), client.DryRunAll)
		if err != nil {
			return err
		}
		if err = velero.Create(ctx, secret.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			return fmt.Errorf("a Secret is not refused: %w", err)
		}
		return nil
	})
	require.NoError(t, velero.Create(ctx, restored))
	line := client.RawPatch(types.MergePatchType, []byte(`{"data":{"line":"changed"}}`))
	require.NoError(t, velero.Patch(ctx, restored, line), "as Velero writes what it has restored once more")

	there := judged{object: `{"apiVersion":"v1","kind":"ConfigMap"}`}.marked(t)
	mark, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": there.GetLabels(), "annotations": there.GetAnnotations()}})
	require.NoError(t, err)
	there.SetName("there")
	there.SetLabels(nil)
	there.SetAnnotations(nil)
	require.NoError(t, stack.Client().Create(ctx, there))
	err = velero.Patch(ctx, there, client.RawPatch(types.MergePatchType, mark))
	require.ErrorContains(t, err, "/holdfast-restores, which has the rights of a tenant, may not patch it")
}
