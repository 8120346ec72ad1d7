package deploy_test

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
)

const (
	withDrills = "resources: [BASE/base]\ncomponents: [BASE/components/drills]\n"
	drillsName = "holdfast-drills"
)

// What an installation without drills does not have: above all the right to make and delete Namespaces.
func TestTheComponentAddsTheDrillsWorkerAndChangesNothing(t *testing.T) {
	base := render(t, inCheckout(t, "deploy", "base"))
	with := renderOverlay(t, withDrills)
	var added []string
	for _, o := range with {
		at := slices.IndexFunc(base, func(b *unstructured.Unstructured) bool { return id(b) == id(o) })
		if at < 0 {
			added = append(added, id(o))
			continue
		}
		assert.Equal(t, base[at].Object, o.Object, id(o))
	}
	assert.ElementsMatch(t, []string{
		"ServiceAccount/holdfast-drills", "ClusterRole/holdfast-drills", "ClusterRoleBinding/holdfast-drills", "Role/holdfast-drills",
		"RoleBinding/holdfast-drills", "ValidatingAdmissionPolicy/holdfast-drills", "ValidatingAdmissionPolicyBinding/holdfast-drills",
		"ValidatingAdmissionPolicy/holdfast-drill-contents", "ValidatingAdmissionPolicyBinding/holdfast-drill-contents",
		"Deployment/holdfast-drills", "PodDisruptionBudget/holdfast-drills",
	}, added)
	for _, role := range base.ofKind("ClusterRole") {
		for _, rule := range into[rbacv1.ClusterRole](t, role).Rules {
			if slices.Contains(rule.Resources, "namespaces") {
				assert.Subset(t, []string{"get", "list", "watch"}, rule.Verbs, id(role))
			}
		}
	}
	worker := with.deployment(t, drillsName).Spec.Template.Spec
	assert.Equal(t, drillsName, worker.ServiceAccountName)
	assert.Equal(t, []string{"--serve=drills"}, worker.Containers[0].Args)
}

// The patch of docs/drills.md changes the variable that it means.
func TestAnOverlayMayAllowAnotherPodSecurityLevelForDrills(t *testing.T) {
	documented := regexp.MustCompile("(?ms)^```yaml\n(patches:.*?podSecurityLevels.*?)^```").FindStringSubmatch(readFile(t, "docs", "drills.md"))
	require.NotNil(t, documented)
	with := renderOverlay(t, withDrills+documented[1])
	policy := into[admissionregistrationv1.ValidatingAdmissionPolicy](t, with.find(t, "ValidatingAdmissionPolicy/holdfast-drills"))
	assert.Equal(t, "podSecurityLevels", policy.Spec.Variables[0].Name)
	assert.Equal(t, "['restricted', 'baseline']", policy.Spec.Variables[0].Expression)
	assert.Equal(t, "podSecurityVersions", policy.Spec.Variables[1].Name)
}

// What the real API server makes of a RestoreDrill: its rules refuse in a sentence, and it cannot be changed.
func TestRestoreDrill(t *testing.T) {
	ctx, stack := t.Context(), theJudge(t).stack
	drill := func(name, spec string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(holdfastv1alpha1.GroupVersion.WithKind(holdfastv1alpha1.KindRestoreDrill))
		object.SetNamespace(fdbNamespace)
		object.SetName(name)
		fields := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte("{"+spec+"}"), &fields))
		object.Object["spec"] = fields
		return object
	}
	object := drill("defaults", `"backupName":"nightly"`)
	require.NoError(t, stack.Client().Create(ctx, object, client.DryRunAll))
	assert.Equal(t, map[string]any{
		"backupName": "nightly", "timeout": "30m", "keepOnFailure": "0s",
		"checks": map[string]any{"objects": true, "workloadsReady": true},
	}, object.Object["spec"])
	for spec, want := range map[string]string{
		``:                                       "spec must have exactly one of backupName and planName",
		`"backupName":"a","planName":"b"`:        "spec must have exactly one of backupName and planName",
		`"backupName":"a","timeout":"10s"`:       "timeout must be a duration in hours, minutes and seconds, for example 30m, between 1m and 24h",
		`"backupName":"a","timeout":"1.5h"`:      "timeout must be a duration in hours, minutes and seconds",
		`"backupName":"a","timeout":"25h"`:       "timeout must be a duration in hours, minutes and seconds",
		`"backupName":"a","keepOnFailure":"48h"`: "keepOnFailure must be a duration in hours, minutes and seconds",
		`"backupName":"a","checks":{"objects":false,"workloadsReady":false}`: "checks must have at least one that is true",
	} {
		require.ErrorContains(t, stack.Client().Create(ctx, drill("refused", spec), client.DryRunAll), want, spec)
	}
	fixed := drill("fixed", `"planName":"nightly"`)
	require.NoError(t, stack.Client().Create(ctx, fixed))
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"timeout":"1h"}}`))
	require.ErrorContains(t, stack.Client().Patch(ctx, fixed, patch), "spec cannot be changed, create another RestoreDrill")
}

// contentIn is an object, as JSON, in a namespace.
func contentIn(t *testing.T, namespace, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(text), &object.Object))
	object.SetNamespace(namespace)
	object.SetName("content")
	return object
}

// placeWithClasses is a namespace of a drill in a cluster with these storage classes. An administrator acts in it: what is judged is the
// content, not who makes it.
func placeWithClasses(t *testing.T, name, classes string) client.Client {
	t.Helper()
	stack := theJudge(t).stack
	drillsWorker(t, "drill-"+name+"0") // until the policies are in force
	place := placeOfDrill("drill-"+name+"1", nil)
	place.Annotations = map[string]string{"holdfast.dev/drill-storage-classes": classes}
	drills, err := stack.UserClient(drillsName)
	require.NoError(t, err)
	require.NoError(t, drills.Create(t.Context(), place))
	t.Cleanup(func() { require.NoError(t, stack.Client().Delete(context.Background(), place)) })
	stays := contentIn(t, place.Name, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"finalizers":["example.com/stays"]}}`)
	eventually.IsTrue(t, time.Minute, "the API server reads policies some time after they are written", func() bool {
		return stack.Client().Create(context.Background(), stays.DeepCopy(), client.DryRunAll) != nil
	})
	return stack.Client()
}

// A claim in a drill's namespace, by Velero or a controller (of StatefulSets, of ephemeral volumes), gets a new
// volume or none.
func TestAClaimOfADrillUsesUpNoVolumeThatIsThere(t *testing.T) {
	const name = "eeeeeeeeeeeeeeeeeee"
	admin := placeWithClasses(t, name, "fast,slow")
	const least = `"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}`
	const noVolumes, certain = "which makes no volumes", "a drill does not restore a claim that asks for a volume that is there"
	for title, test := range map[string]struct{ meta, spec, want string }{
		"a class that makes volumes":      {spec: `,"storageClassName":"fast"`},
		"another one":                     {spec: `,"storageClassName":"slow"`},
		"as Velero moves data back":       {spec: `,"storageClassName":"fast","selector":{"matchLabels":{"velero.io/dynamic-pv-restore":"x"}}`},
		"a class that makes none":         {spec: `,"storageClassName":"by-hand"`, want: `of storage class "by-hand", ` + noVolumes},
		"no class":                        {spec: `,"storageClassName":""`, want: `of storage class "", ` + noVolumes},
		"no class, and no default":        {want: noVolumes},
		"two classes' names":              {spec: `,"storageClassName":"fast.slow"`, want: noVolumes},
		"the class of the old annotation": {meta: `"volume.beta.kubernetes.io/storage-class":"by-hand"`, spec: `,"storageClassName":"fast"`, want: noVolumes},
		"a volume's name":                 {spec: `,"storageClassName":"fast","volumeName":"pv-1"`, want: certain},
		"labels of a volume":              {spec: `,"storageClassName":"fast","selector":{"matchLabels":{"a":"b"}}`, want: certain},
		"expressions on labels":           {spec: `,"storageClassName":"fast","selector":{"matchExpressions":[{"key":"a","operator":"Exists"}]}`, want: certain},
		"another claim as source":         {spec: `,"storageClassName":"fast","dataSource":{"kind":"PersistentVolumeClaim","name":"x"}`, want: certain},
		"a snapshot as source":            {spec: `,"storageClassName":"fast","dataSourceRef":{"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"x"}`, want: certain},
	} {
		claim := contentIn(t, "drill-"+name+"1", `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"annotations":{`+test.meta+
			`}},"spec":{`+least+test.spec+`}}`)
		err := admin.Create(t.Context(), claim, client.DryRunAll)
		if test.want == "" {
			require.NoError(t, err, title)
			continue
		}
		require.ErrorContains(t, err, test.want, title)
	}
}

// A tenant's Job, and what an operator makes, takes nobody's place on a node. What the API server gives a Pod by itself is no reason.
func TestWhatRunsInADrillHasNoPriority(t *testing.T) {
	const name = "fffffffffffffffffff"
	admin := placeWithClasses(t, name, "")
	usual := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "usual"}, Value: 5, GlobalDefault: true}
	require.NoError(t, admin.Create(t.Context(), usual))
	t.Cleanup(func() { require.NoError(t, admin.Delete(context.Background(), usual)) })
	const refused = "what runs in a drill takes nobody's place on a node: leave out priorityClassName"
	template := func(kind, class string) string {
		text := `{"spec":{"restartPolicy":"Never","priorityClassName":"` + class + `","containers":[{"name":"c","image":"i:1"}]}}`
		if kind == "CronJob" {
			return `{"apiVersion":"batch/v1","kind":"CronJob","spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":` + text + `}}}}`
		}
		return `{"apiVersion":"batch/v1","kind":"Job","spec":{"template":` + text + `}}`
	}
	for _, kind := range []string{"Job", "CronJob"} {
		require.NoError(t, admin.Create(t.Context(), contentIn(t, "drill-"+name+"1", template(kind, "")), client.DryRunAll), kind)
		for _, class := range []string{"usual", "system-node-critical"} {
			err := admin.Create(t.Context(), contentIn(t, "drill-"+name+"1", template(kind, class)), client.DryRunAll)
			require.ErrorContains(t, err, refused, kind)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "drill-" + name + "1", Name: "content"}, Spec: restrictedPod()}
	eventually.IsTrue(t, time.Minute, "with the cluster's default class", func() bool {
		made := pod.DeepCopy()
		return admin.Create(context.Background(), made, client.DryRunAll) == nil && made.Spec.PriorityClassName == usual.Name
	})
	pod.Spec.PriorityClassName = "system-node-critical"
	require.ErrorContains(t, admin.Create(t.Context(), pod, client.DryRunAll), refused)
}
