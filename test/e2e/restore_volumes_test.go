package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

const zoneKey = "topology.kubernetes.io/zone"

// Volumes that were newly provisioned get the labels and the reclaim policy that those in the backup had; where they are, this
// cluster knows. No provisioner is here: the test makes the volumes and writes the file that Velero would. Worker stopped, not parallel.
func TestNewVolumesGetTheSettingsOfTheBackup(t *testing.T) {
	x, neighbour := newTenant(t, "grace"), newTenant(t, "dave")
	theirs := newVolume(t, neighbour.namespace)
	require.NoError(t, neighbour.client.Create(t.Context(), neighbour.claim(theirs.Name)))
	awaitBound(t, theirs)
	require.NoError(t, admin.Get(t.Context(), keyOf(theirs), theirs))
	for _, name := range []string{"fresh", "overwritten", "manual"} {
		require.NoError(t, x.client.Create(t.Context(), x.dynamicClaim(name)))
	}
	nab := x.completed("nightly")
	for _, name := range []string{"fresh", "overwritten", "manual"} {
		require.NoError(t, x.client.Delete(t.Context(), x.dynamicClaim(name)))
	}
	awaitAllGone(t, x.dynamicClaim("fresh"))

	var nar *restoring
	unseen(t, env.Worker, func() { nar = x.awaitRestoreCreated(x.restore("back", nab.Name)) },
		func() { awaitRestoredByVelero(t, nar) })
	volumes := map[string]*corev1.PersistentVolume{
		"fresh":       x.provision("fresh", "here", map[string]string{zoneKey: "here", "kept": "by-this-cluster"}, true),
		"overwritten": x.provision("overwritten", "here", map[string]string{zoneKey: "elsewhere"}, true),
		"manual":      x.provision("manual", "here", nil, false),
	}
	noted := func(claim, namespace, volume string) map[string]any {
		return map[string]any{
			"pvcName": claim, "pvcNamespace": namespace, "pvName": volume, "backupMethod": "PodVolumeBackup",
			"pvInfo": map[string]any{"reclaimPolicy": "Retain", "labels": map[string]string{
				"team": "blue", "kept": "from-the-backup", zoneKey: "elsewhere", "node.k8s.io/x": "y", "not a label": "!",
			}},
		}
	}
	velero := nab.Status.VeleroBackup.Name
	putObject(t, stack.Storage().Bucket, "velero/backups/"+velero+"/"+velero+"-volumeinfo.json.gz", gzipped(t, []any{
		noted("fresh", x.namespace, theirs.Name), noted("overwritten", x.namespace, "gone"), noted("manual", x.namespace, theirs.Name),
		noted("data", neighbour.namespace, theirs.Name), noted("data", x.namespace, theirs.Name),
	}))
	require.NoError(t, stack.Component(env.Worker).Resume())
	require.NoError(t, stack.Component(env.Watcher).Resume())

	nar = x.awaitFinalizedAs(nar, oadpv1alpha1.FinalizationPhaseCompleted)
	now := func(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
		found := &corev1.PersistentVolume{}
		require.NoError(t, admin.Get(t.Context(), keyOf(volume), found))
		return found
	}
	fresh := now(volumes["fresh"])
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, fresh.Spec.PersistentVolumeReclaimPolicy)
	assert.Equal(t, map[string]string{zoneKey: "here", "team": "blue", "kept": "from-the-backup"}, fresh.Labels)
	overwritten := now(volumes["overwritten"])
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, overwritten.Spec.PersistentVolumeReclaimPolicy)
	assert.Equal(t, "elsewhere", overwritten.Labels[zoneKey], "reported, not guessed")
	manual := now(volumes["manual"])
	assert.Equal(t, corev1.PersistentVolumeReclaimDelete, manual.Spec.PersistentVolumeReclaimPolicy, "an administrator's")
	assert.Empty(t, manual.Labels)
	after := now(theirs)
	assert.Equal(t, theirs.Spec, after.Spec)
	assert.Equal(t, theirs.ObjectMeta, after.ObjectMeta, "a name in the store leads nowhere")
	warnings, errs := linesOf(nar, "volumes")
	assert.Empty(t, errs)
	require.Len(t, warnings, 3)
	assert.Contains(t, warnings[0]+warnings[1]+warnings[2], "label "+zoneKey+"=elsewhere contradicts its node affinity (here)")
	stored := resultsOf(t, stack.Storage().Dir, "velero", nar)
	assert.Len(t, stored["warnings"].Cluster, 3)
	assert.Equal(t, velerov1.RestorePhaseCompleted, restorePhase(nar))
	recordRestore(t, nar)
}

// dynamicClaim is a claim of a class that a provisioner serves.
func (x *tenant) dynamicClaim(name string) *corev1.PersistentVolumeClaim {
	claim := x.claim("")
	claim.Name = name
	claim.Spec.StorageClassName = ptr.To("provisioned")
	return claim
}

// provision makes the volume of a restored claim, in a zone, as a provisioner does or, without the provisioner's mark, as an
// administrator; it returns when both are bound.
func (x *tenant) provision(name, zone string, labels map[string]string, marked bool) *corev1.PersistentVolume {
	x.t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	require.NoError(x.t, admin.Get(x.t.Context(), keyOf(x.dynamicClaim(name)), claim))
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(claim.UID), Labels: labels},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:            claim.Spec.AccessModes,
			StorageClassName:       *claim.Spec.StorageClassName,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}},
			ClaimRef: &corev1.ObjectReference{
				Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zoneKey, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
			}}}},
		},
	}
	if marked {
		volume.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "example.com/nobody"}
	}
	require.NoError(x.t, admin.Create(x.t.Context(), volume))
	x.t.Cleanup(func() { deleteAtEnd(x.t, volume) })
	awaitBound(x.t, volume)
	return volume
}
