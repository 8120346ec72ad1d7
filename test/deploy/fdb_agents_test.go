package deploy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fdb/agents"
	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/workflows/contract"
)

// Everything for which the API server has a default, or another way to write it.
const richTemplate = `{
	"metadata":{"labels":{"team":"a"},"annotations":{"a":"b"},"creationTimestamp":null},
	"spec":{
		"serviceAccount":"agents","terminationGracePeriodSeconds":5,"nodeSelector":{"disk":"ssd"},"hostAliases":[{"ip":"127.0.0.1"}],
		"imagePullSecrets":[{"name":"pull"}],"tolerations":[{"key":"a","operator":"Exists","tolerationSeconds":null}],
		"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":
			{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"team":"a"}}}}]}},
		"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{}}],
		"initContainers":[{"name":"helper","image":"helper:1","restartPolicy":"Always","ports":[{"containerPort":80}]}],
		"volumes":[
			{"name":"tls","secret":{"secretName":"tls"}},{"name":"roots","configMap":{"name":"roots","optional":true}},
			{"name":"both","projected":{"sources":[{"serviceAccountToken":{"path":"token"}},{"downwardAPI":{"items":[
				{"path":"cpu","resourceFieldRef":{"containerName":"foundationdb","resource":"limits.cpu"}},
				{"path":"name","fieldRef":{"fieldPath":"metadata.name"}}]}}]}},
			{"name":"disk","ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"],
				"resources":{"requests":{"storage":"1024Mi"}}}}}},
			{"name":"host","hostPath":{"path":"/tmp"}}],
		"containers":[
			{"name":"shipper","image":"shipper","securityContext":{},"resources":{"requests":{"cpu":"0.5"}},
			 "ports":[{"containerPort":9090,"hostPort":0}],"readinessProbe":{"httpGet":{"port":9090}},
			 "livenessProbe":{"tcpSocket":{"port":"web"},"periodSeconds":0},"startupProbe":{"grpc":{"port":9090}},
			 "lifecycle":{"preStop":{"httpGet":{"port":"web","path":"/"}}},"envFrom":[{"configMapRef":{"name":"a"}}],
			 "env":[{"name":"EMPTY","value":""},{"name":"CPU","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"0"}}}],
			 "command":[],"args":null},
			{"name":"foundationdb","image":"registry:5000/foundationdb","tty":false,
			 "env":[{"name":"FDB_ZONE_ID","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}}],
			 "resources":{"limits":{"cpu":"2000m","memory":"8589934592"}},
			 "volumeMounts":[{"name":"tls","mountPath":"/tls","readOnly":true}]}]}}`

// fdbAgents: what the API server makes of the agents' Deployment is taken for what was asked for, and what people make of it
// is not.
func fdbAgents(ctx context.Context, t *testing.T, stack *env.Env) {
	object := fdbBackup(t, "agents", `{"agentCount":0,"podTemplateSpec":`+richTemplate+`}`)
	require.NoError(t, stack.Client().Create(ctx, object))
	backup := fdbStored(ctx, t, stack, object)
	wanted, err := agents.Deployment(backup, "7.3.63")
	require.NoError(t, err)
	require.NoError(t, stack.Client().Create(ctx, wanted.DeepCopy()))
	read := func() *appsv1.Deployment {
		found := &appsv1.Deployment{}
		require.NoError(t, stack.Client().Get(ctx, client.ObjectKeyFromObject(wanted), found))
		return found
	}
	often := wait.Backoff{Steps: 100, Duration: 50 * time.Millisecond}
	correct := func(wanted *appsv1.Deployment) *appsv1.Deployment {
		require.NoError(t, retry.RetryOnConflict(often, func() error { // the real controller writes beside us
			existing := read()
			merged, err := agents.Merge(existing, wanted)
			require.NoError(t, err)
			return stack.Client().Patch(ctx, merged, k8s.BoundPatch(existing))
		}))
		return read()
	}
	first := read()
	require.True(t, agents.View(backup, first, wanted).Current, "%+v", first.Spec)

	t.Run("writing it again changes nothing", func(t *testing.T) {
		assert.Equal(t, first.Generation, correct(wanted).Generation)
	})
	t.Run("a restart is nobody's drift", func(t *testing.T) {
		mustKubectl(ctx, t, stack, env.Admin, "rollout", "restart", "deployment/agents", "-n", fdbNamespace)
		restarted := read()
		require.Greater(t, restarted.Generation, first.Generation)
		assert.True(t, agents.View(backup, restarted, wanted).Current)
		assert.Equal(t, restarted.Generation, correct(wanted).Generation, "and does not happen again")
	})
	want := read().Spec
	for title, args := range map[string][]string{
		"scaled":             {"scale", "deployment/agents", "--replicas=2"},
		"another image":      {"set", "image", "deployment/agents", "foundationdb=x:1"},
		"a variable added":   {"set", "env", "deployment/agents", "-c", "foundationdb", "X=y"},
		"a variable removed": {"set", "env", "deployment/agents", "-c", "foundationdb", "FDB_MACHINE_ID-"},
		"a variable changed": {"set", "env", "deployment/agents", "-c", "shipper", "EMPTY=full"},
		"paused":             {"rollout", "pause", "deployment/agents"},
		"a container added":  {"patch", "deployment/agents", "-p", `{"spec":{"template":{"spec":{"containers":[{"name":"x","image":"x"}]}}}}`},
		"labels removed":     {"label", "deployment/agents", fdbv1alpha1.LabelBackup + "-"},
	} {
		t.Run(title, func(t *testing.T) {
			mustKubectl(ctx, t, stack, env.Admin, append(args, "-n", fdbNamespace)...)
			require.False(t, agents.View(backup, read(), wanted).Current)
			corrected := correct(wanted)
			assert.True(t, agents.View(backup, corrected, wanted).Current)
			assert.Equal(t, want, corrected.Spec)
		})
	}
	t.Run("what the user takes back goes", func(t *testing.T) {
		backup.Spec.PodTemplateSpec = nil
		plain, err := agents.Deployment(backup, "7.3.64")
		require.NoError(t, err)
		require.False(t, agents.View(backup, read(), plain).Current)
		corrected := correct(plain)
		assert.True(t, agents.View(backup, corrected, plain).Current)
		assert.Empty(t, corrected.Spec.Template.Spec.NodeSelector)
		assert.Len(t, corrected.Spec.Template.Spec.Containers, 1)
		assert.Len(t, corrected.Spec.Template.Spec.Volumes, 4)
	})
}

// fdbAgentsRestricted: agents run where Pod Security allows least, unless the template says otherwise.
func fdbAgentsRestricted(ctx context.Context, t *testing.T, stack *env.Env) {
	const namespace = "fdb-restricted"
	require.NoError(t, stack.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}))
	for template, want := range map[string]string{
		`{}`: "",
		`{"spec":{"containers":[{"name":"foundationdb","securityContext":{"readOnlyRootFilesystem":true}}]}}`: "",
		`{"spec":{"securityContext":{}}}`: `violates PodSecurity "restricted:latest"`, // left to the platform, here to nobody
	} {
		deployment, err := agents.Deployment(fdbStored(ctx, t, stack, fdbTemplate(ctx, t, stack, template)), "7.3.63")
		require.NoError(t, err)
		pod := &corev1.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec}
		pod.Name, pod.Namespace = "agent", namespace
		err = stack.Client().Create(ctx, pod, client.DryRunAll)
		if want == "" {
			require.NoError(t, err, template)
		} else {
			require.ErrorContains(t, err, want, template)
		}
	}
}

func fdbTemplate(ctx context.Context, t *testing.T, stack *env.Env, template string) *unstructured.Unstructured {
	t.Helper()
	object := fdbBackup(t, "", `{"podTemplateSpec":`+template+`}`)
	require.NoError(t, stack.Client().Create(ctx, object))
	return object
}

// fdbAgentsRun: with what the FoundationDB operator and a user make for it, the Deployment starts agents that find their
// cluster and their credentials, and follows the cluster's version.
func fdbAgentsRun(ctx context.Context, t *testing.T, stack *env.Env, sim *fdbsim.Sim) {
	connection, err := sim.NewCluster("agents", "a1")
	require.NoError(t, err)
	metadata := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: fdbNamespace} }
	require.NoError(t, stack.Client().Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metadata("running-config"), Data: map[string]string{"cluster-file": connection},
	}))
	require.NoError(t, stack.Client().Create(ctx, &corev1.Secret{
		ObjectMeta: metadata("store"), StringData: map[string]string{"credentials": `{"accounts":{"lab@127.0.0.1":{"secret":"s"}}}`},
	}))
	object := fdbBackup(t, "running", `{"agentCount":2}`)
	require.NoError(t, stack.Client().Create(ctx, object))
	backup := fdbStored(ctx, t, stack, object)
	first, err := agents.Deployment(backup, "7.3.63")
	require.NoError(t, err)
	stack.Kubelet().PauseBinding(true)
	require.NoError(t, stack.Client().Create(ctx, first.DeepCopy()))
	existing := &appsv1.Deployment{}
	view := func(wanted *appsv1.Deployment) contract.FDBAgentsView {
		require.NoError(t, stack.Client().Get(ctx, client.ObjectKeyFromObject(wanted), existing))
		return agents.View(backup, existing, wanted)
	}
	done := contract.FDBAgentsView{Exists: true, Ours: true, Current: true, RolledOut: true, Wanted: 2, Ready: 2}
	becomesDone := func(wanted *appsv1.Deployment) {
		eventually.Succeeds(t, 2*time.Minute, func() error {
			if err := stack.Client().Get(ctx, client.ObjectKeyFromObject(wanted), existing); err != nil {
				return err
			}
			if now := agents.View(backup, existing, wanted); now != done {
				return fmt.Errorf("the agents are %+v, not %+v", now, done)
			}
			return nil
		})
	}
	require.Equal(t, contract.FDBAgentsView{Exists: true, Ours: true, Current: true, Wanted: 2}, view(first), "no Pod has a node")
	stack.Kubelet().PauseBinding(false)
	becomesDone(first)
	awaitKnown := func(release string) { // to the cluster: two agents of it, in one zone, each its own machine
		eventually.Succeeds(t, 2*time.Minute, func() error {
			found, err := sim.Agents("agents:a1")
			machines := map[string]bool{}
			for _, agent := range found {
				if strings.HasPrefix(agent.Version, release) && agent.Locality["zoneid"] == "running" {
					machines[agent.Locality["machineid"]] = true
				}
			}
			if err == nil && (len(found) != 2 || len(machines) != 2) {
				err = fmt.Errorf("the cluster knows %+v", found)
			}
			return err
		})
	}
	awaitKnown("7.3.")

	next, err := agents.Deployment(backup, "7.4.6")
	require.NoError(t, err)
	require.False(t, view(next).Current)
	merged, err := agents.Merge(existing, next)
	require.NoError(t, err)
	stack.Kubelet().PauseBinding(true)
	require.NoError(t, stack.Client().Patch(ctx, merged, client.MergeFrom(existing)))
	assert.False(t, view(next).RolledOut, "the old ones are ready, the new ones are not")
	stack.Kubelet().PauseBinding(false)
	becomesDone(next)
	awaitKnown("7.4.")
}
