package fake

import (
	"context"
	"maps"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/location"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// The Secret that the location of NaBSL names, and the key in it.
const (
	SecretName = "keys"
	SecretKey  = "cloud"
)

// Credentials returns the content of a Secret that may be used; marked with a text that nothing else holds.
func Credentials(mark string) []byte {
	return []byte("[default]\naws_access_key_id=AKIA" + mark + "\naws_secret_access_key=" + mark + "\n")
}

// NaBSL returns a NonAdminBackupStorageLocation that is not in the world yet.
func NaBSL(name string) *oadpv1alpha1.NonAdminBackupStorageLocation {
	return &oadpv1alpha1.NonAdminBackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: oadpv1alpha1.NonAdminBackupStorageLocationSpec{BackupStorageLocationSpec: &velerov1.BackupStorageLocationSpec{
			Provider: "aws",
			StorageType: velerov1.StorageType{
				ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: "bucket", Prefix: "backups"},
			},
			Config: map[string]string{"region": "west"},
			Credential: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: SecretName}, Key: SecretKey,
			},
		}},
	}
}

// Secret returns a Secret of the tenant with the given content under SecretKey, and something under another key.
func Secret(name string, content []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("uid-" + name)},
		Type:       "example.com/cloud",
		Data:       map[string][]byte{SecretKey: content, "other": []byte("not for Velero")},
	}
}

// LocationName is the name of all that is made for NaBSL(name).
func LocationName(name string) string { return VeleroName(name) }

// RequireApproval sets the policy's switch.
func (w *World) RequireApproval(required bool) { w.Policy.RequireApprovalForBSL = ptr.To(required) }

// Gather reads a location as the worker does, or, blind, as the watcher does.
func (w *World) Gather(name string, blind bool) *location.Objects {
	gatherer := *w.Locations.Gatherer
	gatherer.ReadSecrets = !blind
	objects, err := gatherer.Gather(context.Background(), Ref(name))
	require.NoError(w.t, err)
	return objects
}

// Location returns the NonAdminBackupStorageLocation of that name, nil if there is none.
func (w *World) Location(name string) *oadpv1alpha1.NonAdminBackupStorageLocation {
	return got(w, types.NamespacedName{Namespace: Namespace, Name: name}, &oadpv1alpha1.NonAdminBackupStorageLocation{})
}

// ApprovalRequest returns that of NaBSL(name), nil if there is none.
func (w *World) ApprovalRequest(name string) *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest {
	return got(w, made(name), &oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest{})
}

// VeleroLocation returns the Velero BackupStorageLocation of NaBSL(name), nil if there is none.
func (w *World) VeleroLocation(name string) *velerov1.BackupStorageLocation {
	return got(w, made(name), &velerov1.BackupStorageLocation{})
}

// Copy returns the copy of the Secret of NaBSL(name), nil if there is none.
func (w *World) Copy(name string) *corev1.Secret { return got(w, made(name), &corev1.Secret{}) }

func made(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: OADPNamespace, Name: LocationName(name)}
}

// EditLocation changes a location's spec as its tenant does.
func (w *World) EditLocation(name string, edit func(*velerov1.BackupStorageLocationSpec)) {
	object := w.Location(name)
	edit(object.Spec.BackupStorageLocationSpec)
	require.NoError(w.t, w.Client.Update(context.Background(), object))
}

// Decide changes an approval request as an administrator does with kubectl.
func (w *World) Decide(name string, edit func(*oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest)) {
	request := w.ApprovalRequest(name)
	require.NotNil(w.t, request, "no approval request for %s", name)
	edit(request)
	require.NoError(w.t, w.Client.Update(context.Background(), request))
}

// Rotate gives the tenant's Secret another content.
func (w *World) Rotate(name string, content []byte) {
	secret := got(w, types.NamespacedName{Namespace: Namespace, Name: name}, &corev1.Secret{})
	require.NotNil(w.t, secret)
	secret.Data = maps.Clone(secret.Data)
	secret.Data[SecretKey] = content
	require.NoError(w.t, w.Client.Update(context.Background(), secret))
}

// Validate has Velero say of a location what it found when it checked it.
func (w *World) Validate(name string, phase velerov1.BackupStorageLocationPhase, message string) {
	object := w.VeleroLocation(name)
	require.NotNil(w.t, object)
	object.Status.Phase, object.Status.Message = phase, message
	require.NoError(w.t, w.Client.Update(context.Background(), object))
}

// Context is that of the test.
func (w *World) Context() context.Context { return w.t.Context() }

// Remove deletes an object, which may be gone already.
func (w *World) Remove(object client.Object) {
	require.NoError(w.t, client.IgnoreNotFound(w.Client.Delete(context.Background(), object)))
}

// identity stands for the Temporal client that decides.
func identity(context.Context, contract.DecisionStep) (string, error) { return Identity, nil }

// Identity is that of every Temporal client in a World.
const Identity = "alice@laptop"
