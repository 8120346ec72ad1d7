package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"holdfast.dev/holdfast/test/env"
)

// A claim in a bucket leads Velero (with EnableCSI) to a VolumeSnapshot, that to a VolumeSnapshotContent, which is nobody's and opens
// any snapshot whose handle it names, and that, by an annotation, to a Secret of any namespace.
//
// Velero is started again for it, so this is not parallel: with EnableCSI it has errors with volumes that no CSI driver serves.
func TestASnapshotInABucketLeadsToNoSecretOfAnotherNamespace(t *testing.T) {
	velero := stack.Component(env.Velero)
	require.NoError(t, velero.RestartWith(t.Context(), "--features=EnableCSI"))
	t.Cleanup(func() { require.NoError(t, velero.Restart(context.Background())) })
	x, account, victim := newTenant(t, "heidi"), newAccount(t), newTenant(t, "carol")
	location := x.own(account)
	x.awaitAvailable(location)
	nab := x.completedInto("nightly", "own")
	backup := nab.Status.VeleroBackup.Name
	const must = `"restore.velero.io/must-include-additional-items":"true"`
	files := map[string]any{}
	put := func(folder, namespace, name, object string) {
		forged := &unstructured.Unstructured{}
		require.NoError(t, forged.UnmarshalJSON([]byte(object)))
		forged.SetName(name)
		forged.SetNamespace(namespace)
		files["resources/"+folder+"/"+name+".json"] = forged.Object
	}
	content := x.namespace + "-content"
	put("persistentvolumeclaims/namespaces/"+x.namespace, x.namespace, "lure", `{"apiVersion":"v1","kind":"PersistentVolumeClaim",`+
		`"metadata":{"annotations":{"velero.io/volume-snapshot-name":"lure",`+must+`}},`+
		`"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"","resources":{"requests":{"storage":"1Gi"}}}}`)
	put("volumesnapshots.snapshot.storage.k8s.io/namespaces/"+x.namespace, x.namespace, "lure",
		`{"apiVersion":"snapshot.storage.k8s.io/v1","kind":"VolumeSnapshot","spec":{"source":{}},`+
			fmt.Sprintf(`"status":{"boundVolumeSnapshotContentName":%q}}`, content))
	put("volumesnapshotcontents.snapshot.storage.k8s.io/cluster", "", content,
		`{"apiVersion":"snapshot.storage.k8s.io/v1","kind":"VolumeSnapshotContent","metadata":{"annotations":{`+must+`,`+
			fmt.Sprintf(`"csi.storage.k8s.io/snapshotter-secret-name":"planted","csi.storage.k8s.io/snapshotter-secret-namespace":%q}},`, victim.namespace)+
			fmt.Sprintf(`"spec":{"driver":"example.com","deletionPolicy":"Retain","source":{"snapshotHandle":"theirs"},"volumeSnapshotRef":{"name":"lure","namespace":%q}},`, x.namespace)+
			`"status":{"snapshotHandle":"theirs"}}`)
	put("secrets/namespaces/"+victim.namespace, victim.namespace, "planted", `{"apiVersion":"v1","kind":"Secret","data":{}}`)
	archive := filepath.Join(x.namespace, "backups", backup, backup+".tar.gz")
	packed, err := os.ReadFile(filepath.Join(account.Dir, archive))
	require.NoError(t, err)
	putObject(t, account.Bucket, archive, extended(t, packed, files))

	nar := x.awaitFinalized(x.restore("lured", nab.Name))
	planted := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: victim.namespace, Name: "planted"}}
	assert.False(t, exists(t, planted), "a Secret in the victim's namespace")
	contents := &unstructured.UnstructuredList{}
	contents.SetAPIVersion("snapshot.storage.k8s.io/v1")
	contents.SetKind("VolumeSnapshotContentList")
	require.NoError(t, admin.List(t.Context(), contents))
	assert.Empty(t, contents.Items)
	stored := resultsOf(t, account.Dir, x.namespace, nar)["errors"]
	assert.Contains(t, fmt.Sprint(stored.Namespaces[victim.namespace]), "such a restore stays within namespace "+x.namespace)
	assert.Contains(t, fmt.Sprint(stored.Cluster), "such a restore stays within namespace "+x.namespace)
	recordRestore(t, nar)
	x.remove(location)
}
