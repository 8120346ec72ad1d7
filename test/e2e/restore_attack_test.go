package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
	"holdfast.dev/holdfast/test/env"
)

// From a tenant's own location a claim that names a volume comes back without it, by a modifier that goes afterwards.
func TestARestoreFromTheTenantsOwnLocation(t *testing.T) {
	t.Parallel()
	x, account := newTenant(t, "bob"), newAccount(t)
	location := x.own(account)
	x.awaitAvailable(location)
	volume := newVolume(t, x.namespace)
	things := x.populate()
	awaitBound(t, volume)
	before := contentOf(t, x.namespace)
	nab := x.completedInto("nightly", "own")
	said := x.awaitRestoreRefused(x.restore("modified", nab.Name, func(spec *velerov1.RestoreSpec) {
		spec.ResourceModifier = &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: "mine"}
	}), oadpv1alpha1.ReasonInvalidRestoreSpec)
	assert.Contains(t, said, "spec.restoreSpec.resourceModifier is restricted")
	for _, thing := range things {
		require.NoError(t, x.client.Delete(t.Context(), thing))
	}
	require.NoError(t, admin.Delete(t.Context(), volume.DeepCopy()))
	awaitContent(t, x.namespace, len(before)-len(things))
	awaitAllGone(t, volume)

	nar := x.restore("back", nab.Name)
	modifier := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: restoreID(nar)}}
	nar = x.awaitRestoreCreated(nar)
	spec := veleroRestore(t, restoreID(nar)).Spec
	assert.Equal(t, ptr.To(false), spec.IncludeClusterResources)
	require.NotNil(t, spec.ResourceModifier)
	assert.Equal(t, modifier.Name, spec.ResourceModifier.Name)

	nar = x.awaitFinalizedAs(nar, oadpv1alpha1.FinalizationPhaseCompleted)
	assert.Equal(t, velerov1.RestorePhaseCompleted, restorePhase(nar))
	assert.False(t, exists(t, modifier), "the modifier is needed no more")
	assert.False(t, exists(t, volume), "no cluster-scoped object comes back")
	after := contentOf(t, x.namespace)
	claim := after["PersistentVolumeClaim data"]["spec"].(map[string]any)
	assert.NotContains(t, claim, "volumeName")
	delete(before["PersistentVolumeClaim data"]["spec"].(map[string]any), "volumeName")
	assert.Equal(t, before, after, "all else is as it was")
	warnings, _ := linesOf(nar, "validation")
	assert.Equal(t, []string{
		"PersistentVolumeClaim data is not bound", // nobody here makes volumes
		"RoleBinding bob-edit: left out, since the location's owner could not have made it",
	}, warnings)
	stored := resultsOf(t, account.Dir, x.namespace, nar)
	assert.Contains(t, stored["warnings"].Namespaces[x.namespace], "holdfast validation: "+warnings[0], "in the tenant's bucket")
	recordRestore(t, nar)
	require.NoError(t, x.client.Delete(t.Context(), nar.DeepCopy()))
	x.awaitRestoreGone(nar)
	x.remove(location)
}

// forgery is what a tenant has put into a backup in its bucket, and where no restore may bring it.
type forgery struct {
	files  map[string]any    // by their place in the archive
	beyond []client.Object   // what must not exist afterwards
	inside map[string]string // ConfigMaps that may
}

// Whatever a tenant writes into its bucket, nothing comes of it outside its namespace.
func TestAForgedArchiveBringsNothingBeyondTheNamespace(t *testing.T) {
	t.Parallel()
	x, account, victim := newTenant(t, "grace"), newAccount(t), newTenant(t, "carol")
	location := x.own(account)
	x.awaitAvailable(location)
	nab := x.completedInto("nightly", "own")
	theirs := configMaps(t, victim.namespace)
	forged := forgedBackup(x.namespace, victim.namespace)
	volume := newVolume(t, victim.namespace)
	velero := nab.Status.VeleroBackup.Name
	archive := filepath.Join(x.namespace, "backups", velero, velero+".tar.gz")
	packed, err := os.ReadFile(filepath.Join(account.Dir, archive))
	require.NoError(t, err)
	putObject(t, account.Bucket, archive, extended(t, packed, forged.files))
	for name, existing := range map[string]velerov1.PolicyType{"forged": "", "forged-over": velerov1.PolicyTypeUpdate} {
		nar := x.awaitFinalized(x.restore(name, nab.Name, func(spec *velerov1.RestoreSpec) { spec.ExistingResourcePolicy = existing }))
		for _, object := range forged.beyond {
			assert.False(t, exists(t, object), "%s: %T %s", name, object, client.ObjectKeyFromObject(object))
		}
		now := configMaps(t, x.namespace)
		for planted, line := range forged.inside {
			assert.Equal(t, line, now[planted]["line"], "the forgery was read at all")
		}
		assert.Equal(t, theirs, configMaps(t, victim.namespace), "the victim's objects")
		recordRestore(t, nar)
	}
	// Which objects can ask Velero for cluster-scoped ones depends on the order of its plugins; that they get none does not.
	before := &corev1.PersistentVolume{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(volume), before))
	direct := restoreAllByHand(t, velero)
	for _, object := range forged.beyond {
		assert.False(t, exists(t, object), "by hand: %T %s", object, client.ObjectKeyFromObject(object))
	}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(volume), volume))
	assert.Equal(t, before, volume, "the victim's volume was written")
	assert.Equal(t, 3, direct.Status.Errors, "two volumes and a priority class")
	x.remove(location)
}

// restoreAllByHand has Velero restore a backup's cluster-scoped objects under the modifier for tenants' locations, over what exists.
func restoreAllByHand(t *testing.T, backup string) *velerov1.Restore {
	t.Helper()
	text, err := restorespec.Mark{Into: "nowhere", OADPNamespace: env.OADPNamespace, By: backup + "-by-hand"}.Modifier(nil)
	require.NoError(t, err)
	modifier := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: backup + "-by-hand"},
		Data:       map[string]string{restorespec.ModifierKey: text},
	}
	direct := &velerov1.Restore{
		ObjectMeta: modifier.ObjectMeta,
		Spec: velerov1.RestoreSpec{
			BackupName: backup, IncludeClusterResources: ptr.To(true), ExistingResourcePolicy: velerov1.PolicyTypeUpdate,
			IncludedResources: []string{"persistentvolumes", "priorityclasses"},
			ResourceModifier:  &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: modifier.Name},
		},
	}
	for _, object := range []client.Object{modifier, direct} {
		require.NoError(t, admin.Create(t.Context(), object))
		t.Cleanup(func() { deleteAtEnd(t, object) })
	}
	return awaitObject(t, admin, direct, patience, "ended", func(now *velerov1.Restore, there bool) bool {
		return there && now.Status.CompletionTimestamp != nil
	})
}

func forgedBackup(own, victim string) forgery {
	const must = "restore.velero.io/must-include-additional-items"
	tag := own + "-forged"
	place := func(resource, namespace, name string) string {
		if namespace == "" {
			return fmt.Sprintf("resources/%s/cluster/%s.json", resource, name)
		}
		return fmt.Sprintf("resources/%s/namespaces/%s/%s.json", resource, namespace, name)
	}
	head := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{must: "true"}}
	}
	config := func(namespace, name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: head(namespace, name), Data: map[string]string{"line": "planted"},
		}
	}
	volume := &corev1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: head("", tag),
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		},
	}
	stolen := volume.DeepCopy()
	stolen.Name, stolen.Labels = victim+"-data", map[string]string{"tier": "stolen"}
	claim := (&tenant{namespace: own}).claim(tag)
	claim.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
	claim.ObjectMeta = head(own, "forged")
	claim.Status.Phase = corev1.ClaimBound
	priority := &schedulingv1.PriorityClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
		ObjectMeta: head("", tag), Value: 1_000_000,
	}
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: head(own, "forged"),
		Spec: corev1.PodSpec{PriorityClassName: tag, Containers: []corev1.Container{{Name: "c", Image: "i:1"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
		ObjectMeta: head("", tag), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "grace"}},
	}
	space := &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: head("", tag),
	}
	request := &oadpv1alpha1.NonAdminBackup{
		TypeMeta:   metav1.TypeMeta{APIVersion: oadpv1alpha1.GroupVersion.String(), Kind: oadpv1alpha1.KindNonAdminBackup},
		ObjectMeta: head(own, "forged"), Spec: oadpv1alpha1.NonAdminBackupSpec{BackupSpec: &velerov1.BackupSpec{}},
	}
	return forgery{
		files: map[string]any{
			place("persistentvolumes", "", tag):                                 volume,
			place("persistentvolumes", "", victim+"-data"):                      stolen,
			place("persistentvolumeclaims", own, "forged"):                      claim,
			place("priorityclasses.scheduling.k8s.io", "", tag):                 priority,
			place("pods", own, "forged"):                                        pod,
			place("clusterrolebindings.rbac.authorization.k8s.io", "", tag):     binding,
			place("namespaces", "", tag):                                        space,
			place("nonadminbackups.oadp.openshift.io", own, "forged"):           request,
			place("configmaps", victim, "planted"):                              config(victim, "planted"),
			place("configmaps", own, "lying"):                                   config(victim, "lying"),
			place("configmaps", "", "scopeless"):                                config(victim, "scopeless"),
			place("configmaps", tag, "planted"):                                 config(tag, "planted"),
			place("configmaps", env.OADPNamespace, "holdfast-policy"):           config(env.OADPNamespace, "holdfast-policy"),
			place("configmaps", own, "planted"):                                 config(own, "planted"),
			place("serviceaccounts", own, "../../../../configmaps/cluster/far"): config(victim, "far"),
		},
		beyond: []client.Object{
			volume, priority, binding, space, request, config(victim, "planted"), config(victim, "lying"),
			config(victim, "scopeless"), config(tag, "planted"), config(victim, "far"),
		},
		inside: map[string]string{"planted": "planted"},
	}
}

// extended returns an archive of Velero's with more files in it.
func extended(t *testing.T, packed []byte, more map[string]any) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	to := tar.NewWriter(zipped)
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	from := tar.NewReader(unzipped)
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.NoError(t, to.WriteHeader(header))
		_, err = io.Copy(to, from)
		require.NoError(t, err)
	}
	for name, object := range more {
		content, err := json.Marshal(object)
		require.NoError(t, err)
		require.NoError(t, to.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}))
		_, err = to.Write(content)
		require.NoError(t, err)
	}
	require.NoError(t, to.Close())
	require.NoError(t, zipped.Close())
	return out.Bytes()
}
