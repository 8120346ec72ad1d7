package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// attack is one object that a tenant has put into an archive in its bucket.
type attack struct {
	// folder is where it lies under resources/, with %s for the tenant's namespace.
	folder string
	// object is what lies there, under the name of the attack, with VICTIM for the victim's namespace.
	object string
	// tell is what the tenant is told of it.
	tell string
	// took reports whether what came of an object that is allowed to come has done harm.
	took func(*unstructured.Unstructured) bool
}

const (
	bindsAdmin = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","roleRef":{"apiGroup":"rbac.authorization.k8s.io",` +
		`"kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"grace"}]}`
	grantsAll        = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`
	leftOut          = "left out"
	statusAnnotation = `"velero.io/restore-status":"true"`
)

// forgeries by their names, which are those of the objects.
var forgeries = map[string]attack{
	"binding":                   {folder: "rolebindings.rbac.authorization.k8s.io/namespaces/%s", object: bindsAdmin, tell: leftOut},
	"role":                      {folder: "roles.rbac.authorization.k8s.io/namespaces/%s", object: grantsAll, tell: leftOut},
	"binding-in-another-folder": {folder: "configmaps/namespaces/%s", object: bindsAdmin, tell: "configmaps"},
	// After the mark was made Velero drops all labels of an object of which one is no string.
	"binding-with-a-number-for-a-label": {
		folder: "configmaps/namespaces/%s", tell: "configmaps",
		object: strings.Replace(bindsAdmin, `"roleRef"`, `"metadata":{"labels":{"a":1}},"roleRef"`, 1),
	},
	"binding-in-another-group": {folder: "rolebindings.x/namespaces/%s", object: bindsAdmin, tell: leftOut},
	"role-in-another-group":    {folder: "roles.apps/namespaces/%s", object: grantsAll, tell: leftOut},
	"claim-in-another-group": {
		folder: "persistentvolumeclaims.x/namespaces/%s", tell: "was not restored",
		object: `{"apiVersion":"v1","kind":"PersistentVolumeClaim","spec":{"volumeName":"VICTIM-data","storageClassName":"",` +
			`"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`,
	},
	"application": {
		folder: "applications.attack.example.com/namespaces/%s", tell: leftOut,
		object: `{"apiVersion":"attack.example.com/v1","kind":"Application","spec":{"deploys":"anything"}}`,
	},
	"policy": {
		folder: "networkpolicies.networking.k8s.io/namespaces/%s", tell: leftOut,
		object: `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","spec":{"podSelector":{},"ingress":[{}]}}`,
	},
	"quota": {
		folder: "resourcequotas/namespaces/%s", tell: leftOut,
		object: `{"apiVersion":"v1","kind":"ResourceQuota","spec":{"hard":{"count/leases.coordination.k8s.io":"1000"}}}`,
	},
	"limits": {
		folder: "limitranges/namespaces/%s", tell: leftOut,
		object: `{"apiVersion":"v1","kind":"LimitRange","spec":{"limits":[{"type":"PersistentVolumeClaim","max":{"storage":"1Ti"}}]}}`,
	},
	"slice": {
		folder: "endpointslices.discovery.k8s.io/namespaces/%s", tell: leftOut,
		object: `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"labels":{"kubernetes.io/service-name":"web"}},` +
			`"addressType":"IPv4","endpoints":[{"addresses":["10.9.9.9"]}]}`,
	},
	"endpoints": {
		folder: "endpoints/namespaces/%s", tell: leftOut,
		object: `{"apiVersion":"v1","kind":"Endpoints","subsets":[{"addresses":[{"ip":"10.9.9.9"}],"ports":[{"port":80}]}]}`,
	},
	"privileged": {
		folder: "pods/namespaces/%s", tell: "Pod Security level baseline of the namespace does not allow privileged containers",
		object: `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"c","image":"i:1","securityContext":{"privileged":true}}]}}`,
	},
	"status": {
		folder: "services/namespaces/%s",
		object: `{"apiVersion":"v1","kind":"Service","metadata":{"annotations":{` + statusAnnotation + `}},` +
			`"spec":{"type":"LoadBalancer","ports":[{"port":80}]},"status":{"loadBalancer":{"ingress":[{"ip":"10.9.9.9"}]}}}`,
		took: func(service *unstructured.Unstructured) bool {
			_, forged, _ := unstructured.NestedSlice(service.Object, "status", "loadBalancer", "ingress")
			return forged
		},
	},
}

// Whatever lies in a bucket, nothing comes of it that its owner could not have made, and what the owner could have made comes.
func TestNothingComesOutOfABucketThatItsOwnerCouldNotHaveMade(t *testing.T) {
	t.Parallel()
	x, account, victim := newTenant(t, "grace"), newAccount(t), newTenant(t, "carol")
	newVolume(t, victim.namespace)
	location := x.own(account)
	x.awaitAvailable(location)
	nab := x.completedInto("nightly", "own")
	velero := nab.Status.VeleroBackup.Name
	files := map[string]any{}
	listed := map[string][]string{}
	forged := map[string]*unstructured.Unstructured{}
	for name, each := range forgeries {
		object := each.forged(t, name, x.namespace, victim.namespace)
		forged[name] = object
		files["resources/"+fmt.Sprintf(each.folder, x.namespace)+"/"+name+".json"] = object.Object
		kind := object.GetAPIVersion() + "/" + object.GetKind()
		listed[kind] = append(listed[kind], x.namespace+"/"+name)
	}
	files["resources/configmaps/namespaces/"+x.namespace+"/ordinary.json"] = map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "ordinary", "namespace": x.namespace},
	}
	// Velero looks at the first file of a folder before anything else; one without a version had it wait for ever.
	versionless := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "aaa"}}
	files["resources/configmaps/namespaces/"+x.namespace+"/aaa.json"] = map[string]any{
		"kind": "ConfigMap", "metadata": map[string]any{"name": "aaa", "namespace": x.namespace},
	}
	folder := filepath.Join(x.namespace, "backups", velero)
	archive := filepath.Join(folder, velero+".tar.gz")
	packed, err := os.ReadFile(filepath.Join(account.Dir, archive))
	require.NoError(t, err)
	putObject(t, account.Bucket, archive, extended(t, packed, files))
	putObject(t, account.Bucket, filepath.Join(folder, velero+"-resource-list.json.gz"), gzipped(t, listed))

	nar := x.awaitFinalized(x.restore("forged", nab.Name))
	ordinary := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "ordinary"}}
	require.True(t, exists(t, ordinary), "the forgery was read at all")
	assert.False(t, exists(t, versionless))
	for name, each := range forgeries {
		t.Run(name, func(t *testing.T) { each.check(t, forged[name]) })
	}
	x.awaitFinalized(x.restore("forged-over", nab.Name, func(spec *velerov1.RestoreSpec) {
		spec.ExistingResourcePolicy = velerov1.PolicyTypeUpdate
	}))
	for name, each := range forgeries {
		t.Run(name+" over what exists", func(t *testing.T) { each.check(t, forged[name]) })
	}
	t.Run("the tenant has no more rights", func(t *testing.T) {
		own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.namespace}}
		err := x.client.Patch(t.Context(), own, mergePatch(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`))
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
	})
	t.Run("the tenant is told", func(t *testing.T) { tellsOfAttacks(t, x, account, nar) })
	recordRestore(t, nar)
	x.remove(location)
}

// forged is the object as it lies in the archive.
func (a attack) forged(t *testing.T, name, own, victim string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, object.UnmarshalJSON([]byte(strings.ReplaceAll(a.object, "VICTIM", victim))))
	object.SetName(name)
	object.SetNamespace(own)
	return object
}

// check looks whether anything has come of an object.
func (a attack) check(t *testing.T, forged *unstructured.Unstructured) {
	t.Helper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(forged.GroupVersionKind())
	err := admin.Get(t.Context(), client.ObjectKeyFromObject(forged), found)
	if a.took != nil {
		require.NoError(t, err, "the object itself is allowed")
		assert.False(t, a.took(found), "%s %s did its harm", forged.GetKind(), forged.GetName())
		return
	}
	assert.True(t, apierrors.IsNotFound(err), "%s %s came back: %v", forged.GetKind(), forged.GetName(), err)
	inFolder := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: forged.GetNamespace(), Name: forged.GetName()}}
	assert.False(t, exists(t, inFolder), "%s came back as what its folder says", forged.GetName())
}

// tellsOfAttacks: what was left out or refused is named in the results and by holdfast describe, and counted in a condition.
func tellsOfAttacks(t *testing.T, x *tenant, account env.Account, nar *restoring) {
	t.Helper()
	stored := resultsOf(t, account.Dir, x.namespace, nar)
	lines := slices.Concat(stored["warnings"].Namespaces[x.namespace], stored["errors"].Namespaces[x.namespace])
	described := holdfast(t, "describe", "restore", x.namespace+"/"+nar.Name)
	for name, each := range forgeries {
		if each.tell == "" {
			continue
		}
		assert.Contains(t, described, name)
		told := slices.ContainsFunc(lines, func(line string) bool {
			return strings.Contains(line, name) && strings.Contains(line, each.tell)
		})
		assert.True(t, told, "of %s nobody says %q: %q", name, each.tell, lines)
	}
	condition := restoreCondition(nar, oadpv1alpha1.NonAdminConditionFiltered)
	require.NotNil(t, condition)
	assert.Equal(t, metav1.ConditionTrue, condition.Status)
	assert.Contains(t, condition.Message, "10 left out, 4 refused by the API server")
}
