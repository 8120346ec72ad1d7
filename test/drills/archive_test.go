package drills_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
)

// awaitDigests waits until the digests of a backup are recorded, and returns the name of its Velero Backup.
func (x *tenant) awaitDigests(backup string) string {
	x.t.Helper()
	nab := &oadpv1alpha1.NonAdminBackup{}
	require.NoError(x.t, x.client.Get(x.t.Context(), client.ObjectKey{Namespace: x.namespace, Name: backup}, nab))
	name := nab.Status.VeleroBackup.Name
	eventually.IsTrue(x.t, patience, "digests of "+name+" are recorded", func() bool {
		made := &velerov1.Backup{}
		err := admin.Get(context.Background(), client.ObjectKey{Namespace: env.OADPNamespace, Name: name}, made)
		return err == nil && made.Annotations[holdfastv1alpha1.AnnotationDigests] == holdfastv1alpha1.DigestsRecorded
	})
	return name
}

// changeArchive changes the files in a backup's archive, once Holdfast has recorded their digests.
func (x *tenant) changeArchive(backup string, change func(files map[string][]byte)) {
	x.t.Helper()
	name := x.awaitDigests(backup)
	storage := stack.Storage()
	path := filepath.Join(storage.Dir, storage.Prefix, "backups", name, name+".tar.gz")
	packed, err := os.ReadFile(path)
	require.NoError(x.t, err)
	files := unpacked(x.t, packed)
	change(files)
	require.NoError(x.t, os.WriteFile(path, repacked(x.t, files), 0o600))
}

func unpacked(t *testing.T, packed []byte) map[string][]byte {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	files := map[string][]byte{}
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		if header.Typeflag == tar.TypeReg {
			files[header.Name], err = io.ReadAll(archive)
			require.NoError(t, err)
		}
	}
}

func repacked(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))}
		require.NoError(t, archive.WriteHeader(header))
		_, err := archive.Write(files[name])
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(archive.Close(), zipped.Close()))
	return packed.Bytes()
}

func TestAnArchiveThatWasChangedFailsItsDrill(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "heidi")
	x.create(configMap("settings"), configMap("untouched"),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{"password": "of-the-drill", "user": "u"}})
	x.backUp("nightly")
	x.changeArchive("nightly", func(files map[string][]byte) {
		delete(files, "resources/configmaps/namespaces/"+x.namespace+"/settings.json")
		delete(files, "resources/configmaps/v1-preferredversion/namespaces/"+x.namespace+"/settings.json")
		for _, folder := range []string{"secrets", "secrets/v1-preferredversion"} {
			path := "resources/" + folder + "/namespaces/" + x.namespace + "/keys.json"
			var secret corev1.Secret
			require.NoError(t, json.Unmarshal(files[path], &secret), path)
			secret.Data["password"] = []byte("another")
			changed, err := json.Marshal(&secret)
			require.NoError(t, err)
			files[path] = changed
		}
	})
	x.changeArchive("nightly", func(files map[string][]byte) { // Velero cleans a path, and takes the last file of one
		kept := files["resources/configmaps/v1-preferredversion/namespaces/"+x.namespace+"/untouched.json"]
		files["resources/configmaps/zz/../v1-preferredversion/namespaces/"+x.namespace+"/untouched.json"] = kept
	})
	ended := x.awaitEnd(x.drill("weekly", "nightly"))
	condition := verified(t, ended)
	assert.Equal(t, metav1.ConditionFalse, condition.Status, "%+v", ended.Status)
	assert.Equal(t, holdfastv1alpha1.ReasonChecksFailed, condition.Reason)
	all := findings(ended)
	assert.Contains(t, all, "ConfigMap settings is in the backup and was not restored")
	assert.Contains(t, all, "configmaps/settings was removed from the backup's archive later")
	assert.Regexp(t, `secrets/keys is not what was backed up: .*data\.password differs?`, all)
	assert.Contains(t, all, `/untouched.json" was added to the backup's archive later: Velero takes it for resources/configmaps/v1-preferredversion/`)
	assert.NotContains(t, all, "another")
}

// Whatever an archive holds, nothing comes of it outside the drill's namespace, and nothing is left of it.
func TestContentThatWantsOutComesToNothing(t *testing.T) {
	t.Parallel()
	x, victim := newTenant(t, "bob"), newTenant(t, "carol")
	x.create(configMap("settings"), service("web", corev1.ServiceTypeLoadBalancer))
	x.backUp("nightly")
	place := func(kind, namespace, name string) string {
		return "resources/" + kind + "/namespaces/" + namespace + "/" + name + ".json"
	}
	escape := workload("escape", running)
	escape.Namespace, escape.APIVersion, escape.Kind = x.namespace, "apps/v1", "Deployment"
	escape.Spec.Template.Spec.HostPID = true
	escape.Spec.Template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	escape.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	binding := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "take-over"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "bob"}},
	}
	planted := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: victim.namespace, Name: "planted"},
	}
	role := &rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: "planted"},
	}
	x.changeArchive("nightly", func(files map[string][]byte) {
		for path, object := range map[string]client.Object{
			place("deployments.apps", x.namespace, "escape"):                          escape,
			place("rolebindings.rbac.authorization.k8s.io", x.namespace, "take-over"): binding,
			place("configmaps", victim.namespace, "planted"):                          planted,
			place("configmaps", x.namespace, "in-the-wrong-folder"):                   planted,
			"resources/clusterroles.rbac.authorization.k8s.io/cluster/planted.json":   role,
			place("clusterroles.rbac.authorization.k8s.io", x.namespace, "planted"):   role,
		} {
			content, err := json.Marshal(object)
			require.NoError(t, err)
			files[path] = content
		}
	})
	theirs := victim.fingerprint()
	drill := x.drill("weekly", "nightly", func(spec *holdfastv1alpha1.RestoreDrillSpec) { spec.KeepOnFailure = "1h" })
	kept := x.await(drill, "is kept", func(s *holdfastv1alpha1.RestoreDrillStatus) bool { return s.Phase == holdfastv1alpha1.DrillKept })
	inDrill := kept.Status.Namespace
	var bindings rbacv1.RoleBindingList
	require.NoError(t, admin.List(t.Context(), &bindings, client.InNamespace(inDrill)))
	require.Len(t, bindings.Items, 1, "tenantsMayLook, and nothing of the archive's")
	assert.Equal(t, "view", bindings.Items[0].RoleRef.Name)
	var services corev1.ServiceList
	require.NoError(t, admin.List(t.Context(), &services, client.InNamespace(inDrill)))
	for i := range services.Items {
		assert.Equal(t, corev1.ServiceTypeClusterIP, services.Items[i].Spec.Type)
	}
	var pods corev1.PodList
	require.NoError(t, admin.List(t.Context(), &pods, client.InNamespace(inDrill)))
	assert.Empty(t, pods.Items, "Pod Security admits no privileged Pod")

	assert.Equal(t, metav1.ConditionFalse, verified(t, kept).Status, "%+v", kept.Status)
	assert.Contains(t, findings(kept), "deployments.apps/escape was added to the backup's archive later")
	x.discard(kept)
	assert.Equal(t, theirs, victim.fingerprint(), "another tenant's namespace")
	err := admin.Get(t.Context(), client.ObjectKey{Name: "planted"}, &rbacv1.ClusterRole{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}
