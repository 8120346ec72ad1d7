package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/kstatus"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

type nabsl = oadpv1alpha1.NonAdminBackupStorageLocation

// newAccount makes an account of the S3 server with a bucket of its own. Nobody may ever show its key: checkSecrets.
func newAccount(t *testing.T) env.Account {
	t.Helper()
	account, err := stack.CreateAccount(t.Context(), fmt.Sprintf("bucket-%06x", rand.IntN(1<<24)))
	require.NoError(t, err)
	keepSecret(account.SecretKey)
	return account
}

// rotated gives the account a new key.
func rotated(t *testing.T, account env.Account) env.Account {
	t.Helper()
	account, err := stack.RotateAccount(t.Context(), account)
	require.NoError(t, err)
	keepSecret(account.SecretKey)
	return account
}

// withWrongKey is what somebody has who mistyped the key.
func withWrongKey(account env.Account) env.Account {
	account.SecretKey = fmt.Sprintf("wrong%016x%016x", rand.Uint64(), rand.Uint64())
	keepSecret(account.SecretKey)
	return account
}

// secret creates a Secret as the tenant, of a type of the tenant's and with a key that no location names.
func (x *tenant) secret(name string, content []byte) *corev1.Secret {
	x.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name},
		Type:       "example.com/keys",
		Data:       map[string][]byte{"cloud": content, "other": []byte("not to be copied")},
	}
	require.NoError(x.t, x.client.Create(x.t.Context(), secret))
	return secret
}

// rewrite changes what a Secret of the tenant's holds.
func (x *tenant) rewrite(secret *corev1.Secret, content []byte) {
	x.t.Helper()
	before := secret.DeepCopy()
	secret.Data["cloud"] = content
	require.NoError(x.t, x.client.Patch(x.t.Context(), secret, client.MergeFrom(before)))
}

// locationSpec is a spec for a bucket of the S3 server, with key "cloud" of a Secret.
func locationSpec(bucket, secret string) *velerov1.BackupStorageLocationSpec {
	return &velerov1.BackupStorageLocationSpec{
		Provider: "aws",
		Config:   map[string]string{"region": stack.Storage().Region, "s3ForcePathStyle": "true", "s3Url": stack.Storage().Endpoint},
		Credential: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: "cloud",
		},
		StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: bucket}},
		// Velero looks at its locations every ten seconds, and only at those whose time has come.
		ValidationFrequency: &metav1.Duration{Duration: time.Second},
	}
}

// locate creates a NonAdminBackupStorageLocation as the tenant.
func (x *tenant) locate(name string, spec *velerov1.BackupStorageLocationSpec) *nabsl {
	x.t.Helper()
	location := &nabsl{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name},
		Spec:       oadpv1alpha1.NonAdminBackupStorageLocationSpec{BackupStorageLocationSpec: spec},
	}
	require.NoError(x.t, x.client.Create(x.t.Context(), location))
	x.t.Cleanup(func() { _ = admin.Delete(context.Background(), location.DeepCopy()) }) // Velero looks at each, again and again
	return location
}

// own is a location "own" in the account's bucket, with its credentials in Secret "credentials".
func (x *tenant) own(account env.Account) *nabsl {
	x.t.Helper()
	x.secret("credentials", account.CredentialsFile())
	return x.locate("own", locationSpec(account.Bucket, "credentials"))
}

func (x *tenant) change(location *nabsl, merge string) {
	x.t.Helper()
	require.NoError(x.t, x.client.Patch(x.t.Context(), location.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(merge))))
}

// prefixed changes where in the bucket the location is.
func (x *tenant) prefixed(location *nabsl, prefix string) {
	x.t.Helper()
	x.change(location, fmt.Sprintf(`{"spec":{"backupStorageLocationSpec":{"objectStorage":{"prefix":%q}}}}`, prefix))
}

func (x *tenant) awaitLocation(location *nabsl, want string, ok func(*nabsl) bool) *nabsl {
	x.t.Helper()
	return awaitObject(x.t, admin, location, patience, want, func(now *nabsl, there bool) bool { return there && ok(now) })
}

// awaitLocationPhase waits until the location is made and Velero says so of it.
func (x *tenant) awaitLocationPhase(location *nabsl, phase velerov1.BackupStorageLocationPhase) *nabsl {
	x.t.Helper()
	return x.awaitLocation(location, "Created and "+string(phase), func(now *nabsl) bool {
		made := now.Status.VeleroBackupStorageLocation
		ready := meta.IsStatusConditionTrue(now.Status.Conditions, kstatus.ConditionReady)
		return now.Status.Phase == oadpv1alpha1.NonAdminPhaseCreated && made != nil && made.Status != nil && made.Status.Phase == phase &&
			ready == (phase == velerov1.BackupStorageLocationPhaseAvailable)
	})
}

func (x *tenant) awaitAvailable(location *nabsl) *nabsl {
	x.t.Helper()
	return x.awaitLocationPhase(location, velerov1.BackupStorageLocationPhaseAvailable)
}

// awaitRefused waits until the location's spec is refused with a text.
func (x *tenant) awaitRefused(location *nabsl, text string) *nabsl {
	x.t.Helper()
	return x.awaitLocation(location, "refused: "+text, func(now *nabsl) bool {
		accepted := locationCondition(now, oadpv1alpha1.NonAdminConditionAccepted)
		return now.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff && accepted != nil &&
			accepted.Status == metav1.ConditionFalse && accepted.Reason == oadpv1alpha1.ReasonBSLSpecValidation &&
			strings.Contains(accepted.Message, text)
	})
}

func locationCondition(location *nabsl, kind oadpv1alpha1.NonAdminCondition) *metav1.Condition {
	return meta.FindStatusCondition(location.Status.Conditions, string(kind))
}

// into has a backup go to a location of the tenant's.
func into(location string) change {
	return withSpec(func(spec *velerov1.BackupSpec) { spec.StorageLocation = location })
}

// awaitWaiting waits until a backup waits for its location, for the reason given.
func (x *tenant) awaitWaiting(nab *oadpv1alpha1.NonAdminBackup, reason string) {
	x.t.Helper()
	x.await(nab, "waits: "+reason, func(now *oadpv1alpha1.NonAdminBackup) bool {
		accepted := condition(now, oadpv1alpha1.NonAdminConditionAccepted)
		return now.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff && accepted != nil && strings.Contains(accepted.Message, reason)
	})
}

// awaitLocationEvent waits for an Event on the location whose note holds a text.
func (x *tenant) awaitLocationEvent(location *nabsl, reason, text string) {
	x.t.Helper()
	awaitSuccess(x.t, func(ctx context.Context) error {
		return eventSaid(ctx, x.client, location, reason, text)
	})
}

// remove deletes a location and waits until nothing of it is left in the cluster.
func (x *tenant) remove(location *nabsl) {
	x.t.Helper()
	require.NoError(x.t, client.IgnoreNotFound(x.client.Delete(x.t.Context(), location.DeepCopy())))
	x.awaitRemoved(location)
}

func (x *tenant) awaitRemoved(location *nabsl) {
	x.t.Helper()
	awaitObject(x.t, admin, location, patience, "gone", func(_ *nabsl, there bool) bool { return !there })
	checkNothingMade(x.t, location)
	checkNoRequest(x.t, location)
	awaitEndOfLocation(x.t, location)
}

func locationRef(location *nabsl) contract.ObjectRef {
	return contract.ObjectRef{Namespace: location.Namespace, Name: location.Name, UID: string(location.UID)}
}

// nacuuid is the name of all that is made for a location.
func nacuuid(location *nabsl) string {
	return owner.NACUUID(stack.ClusterID(), location.Namespace, location.Name, string(location.UID))
}

// made reads an object of the OADP namespace as the administrator and reports whether it exists.
func made(t *testing.T, name string, into client.Object) bool {
	t.Helper()
	err := admin.Get(t.Context(), types.NamespacedName{Namespace: env.OADPNamespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return false
	}
	require.NoError(t, err)
	return true
}

// madeFor returns what was made for a location.
func madeFor(t *testing.T, location *nabsl) (*velerov1.BackupStorageLocation, *corev1.Secret) {
	t.Helper()
	velero, secret := &velerov1.BackupStorageLocation{}, &corev1.Secret{}
	require.True(t, made(t, nacuuid(location), velero), "no Velero BackupStorageLocation")
	require.True(t, made(t, nacuuid(location), secret), "no Secret")
	return velero, secret
}

func checkNothingMade(t *testing.T, location *nabsl) {
	t.Helper()
	assert.False(t, made(t, nacuuid(location), &velerov1.BackupStorageLocation{}), "a Velero BackupStorageLocation")
	assert.False(t, made(t, nacuuid(location), &corev1.Secret{}), "a Secret")
}

// bucketHas reports whether the account's bucket holds files of a Velero Backup, in the folder of its namespace.
func bucketHas(t *testing.T, account env.Account, folder, backup string) bool {
	t.Helper()
	objects, err := stack.BucketObjects(account, folder+"/backups/"+backup)
	require.NoError(t, err)
	return len(objects) > 0
}
