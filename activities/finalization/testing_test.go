package finalization

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"gocloud.dev/blob/fileblob"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/owner"
)

const (
	oadp        = "openshift-adp"
	team        = "team"
	narName     = "undo"
	restoreName = "team-undo-1"
	backupName  = "team-nightly-1"
)

// scene is a cluster with a restore that Velero has ended, and the bucket of its backup.
type scene struct {
	*Context
	t      *testing.T
	folder string
	writes []string
	refuse func(verb string, object client.Object) error
}

func newScene(t *testing.T, objects ...client.Object) *scene {
	t.Helper()
	nar := &oadpv1alpha1.NonAdminRestore{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: narName, UID: "u"}}
	restore := &velerov1.Restore{
		ObjectMeta: owner.Restore.Meta(nar, restoreName, oadp, restoreName),
		Spec:       velerov1.RestoreSpec{BackupName: backupName},
		Status:     velerov1.RestoreStatus{Phase: velerov1.RestorePhaseCompleted},
	}
	s := &scene{t: t, folder: t.TempDir()}
	base := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(append(objects, nar, restore)...).Build()
	s.Context = &Context{
		NAR: nar, Restore: restore, Progress: func() {},
		Client: interceptor.NewClient(base, interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				return s.write("patch", o, func() error { return c.Patch(ctx, o, p, opts...) })
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				return s.write("delete", o, func() error { return c.Delete(ctx, o, opts...) })
			},
		}),
		OpenStore: func(context.Context) (*objectstore.Store, error) {
			bucket, err := fileblob.OpenBucket(s.folder, &fileblob.Options{Metadata: fileblob.MetadataDontWrite})
			require.NoError(t, err)
			return objectstore.NewStore(bucket, ""), nil
		},
	}
	return s
}

func (s *scene) write(verb string, object client.Object, do func() error) error {
	if s.refuse != nil {
		if err := s.refuse(verb, object); err != nil {
			return err
		}
	}
	s.writes = append(s.writes, verb+" "+object.GetName())
	return do()
}

// put puts a file of Velero's in the bucket.
func (s *scene) put(key string, content any) {
	s.t.Helper()
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	require.NoError(s.t, json.NewEncoder(writer).Encode(content))
	require.NoError(s.t, writer.Close())
	file := filepath.Join(s.folder, filepath.FromSlash(key))
	require.NoError(s.t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(s.t, os.WriteFile(file, packed.Bytes(), 0o600))
}

func (s *scene) putVolumes(infos ...objectstore.VolumeInfo) {
	s.put("backups/"+backupName+"/"+backupName+"-volumeinfo.json.gz", infos)
}

func (s *scene) run(task Task) (Findings, error) {
	s.t.Helper()
	found, err := task.Run(s.t.Context(), s.Context)
	require.NoError(s.t, s.Close())
	s.store = nil // the next attempt opens its own
	return found, err
}

func (s *scene) volume(name string) *corev1.PersistentVolume {
	s.t.Helper()
	volume := &corev1.PersistentVolume{}
	require.NoError(s.t, s.Client.Get(s.t.Context(), types.NamespacedName{Name: name}, volume))
	return volume
}

// labelled marks objects as restored by Velero.
func labelled(restore string) map[string]string {
	return map[string]string{velerov1.RestoreNameLabel: restore}
}

// claim returns a restored claim, bound to the volume, or pending without one.
func claim(name, volume string) *corev1.PersistentVolumeClaim {
	class := "standard"
	made := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name, UID: types.UID("uid-" + name), Labels: labelled(restoreName)},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: volume, StorageClassName: &class},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	if volume == "" {
		made.Status.Phase = corev1.ClaimPending
	}
	return made
}

// provisioned returns a volume that a provisioner made for the claim of that name.
func provisioned(name, claim string, labels map[string]string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-" + name), Labels: labels,
			Annotations: map[string]string{provisionedByAnnotation: "csi.example.com"},
		},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef:                      &corev1.ObjectReference{Namespace: team, Name: claim, UID: types.UID("uid-" + claim)},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
}

func info(claim string, settings objectstore.PVSettings) objectstore.VolumeInfo {
	return objectstore.VolumeInfo{
		PVCName: claim, PVCNamespace: team, PVName: "old", BackupMethod: objectstore.MethodPodVolumeBackup, PVInfo: &settings,
	}
}

// zoned puts a volume where a topology key has that value.
func zoned(volume *corev1.PersistentVolume, key, value string) *corev1.PersistentVolume {
	volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
		}}},
	}}
	return volume
}
