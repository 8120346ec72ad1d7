package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

func TestTwoTenantsEachBackUpIntoTheirOwnBucket(t *testing.T) {
	t.Parallel()
	type side struct {
		*tenant
		account  env.Account
		location *nabsl
		nab      *oadpv1alpha1.NonAdminBackup
	}
	var sides []*side
	for _, user := range []string{"alice", "bob"} {
		s := &side{tenant: newTenant(t, user), account: newAccount(t)}
		s.location = s.own(s.account)
		s.nab = s.backUp("nightly", into("own")) // whether or not the location is ready
		sides = append(sides, s)
	}
	for _, s := range sides {
		s.awaitAvailable(s.location)
		velero, secret := madeFor(t, s.location)
		assert.Equal(t, map[string][]byte{"cloud": s.account.CredentialsFile()}, secret.Data, "the one key, nothing else")
		assert.Equal(t, corev1.SecretTypeOpaque, secret.Type)
		assert.Equal(t, s.namespace, velero.Spec.ObjectStorage.Prefix)
		assert.False(t, velero.Spec.Default)

		s.nab = s.awaitVeleroPhase(s.nab, velerov1.BackupPhaseCompleted)
		assert.Equal(t, velero.Name, s.nab.Status.VeleroBackup.Spec.StorageLocation)
	}
	inDefault, err := stack.Objects("")
	require.NoError(t, err)
	for i, s := range sides {
		backup := s.nab.Status.VeleroBackup.Name
		assert.True(t, bucketHas(t, s.account, s.namespace, backup))
		other := sides[1-i]
		elsewhere, err := stack.BucketObjects(other.account, "")
		require.NoError(t, err)
		for _, object := range append(elsewhere, inDefault...) {
			assert.NotContains(t, object.Key, backup)
		}
		own, err := stack.BucketObjects(s.account, "")
		require.NoError(t, err)
		for _, object := range own {
			assert.Regexp(t, "^"+s.namespace+"/", object.Key, "in the folder of its namespace")
		}
		awaitEnd(t, s.nab)
	}
	for _, s := range sides {
		s.remove(s.location)
	}
}

// Wrong credentials, corrected ones, and rotated ones; a backup that waits meanwhile.
func TestCredentialsAreWrongAndThenRight(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "carol")
	account := newAccount(t)
	secret := x.secret("credentials", withWrongKey(account).CredentialsFile())
	location := x.locate("own", locationSpec(account.Bucket, "credentials"))

	seen := x.awaitLocationPhase(location, velerov1.BackupStorageLocationPhaseUnavailable)
	velero, _ := madeFor(t, location)
	const words = "api error SignatureDoesNotMatch: The request signature we calculated does not match"
	require.Contains(t, velero.Status.Message, words)
	shown := seen.Status.VeleroBackupStorageLocation.Status.Message
	assert.Contains(t, shown, words, "Velero's own words")
	assert.NotContains(t, shown, "RequestID", "which is another each time")
	x.awaitLocationEvent(location, "LocationUnavailable", "403")
	nab := x.backUp("meanwhile", into("own"))
	x.awaitWaiting(nab, "is not in available state")

	// Nothing else is done: the location recovers, and the backup goes on.
	x.rewrite(secret, account.CredentialsFile())
	awaitCopy(t, location, account)
	x.awaitAvailable(location)
	x.awaitLocationEvent(location, "LocationAvailable", "")
	nab = x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
	assert.True(t, bucketHas(t, account, x.namespace, nab.Status.VeleroBackup.Name))

	account = rotated(t, account)
	x.rewrite(secret, account.CredentialsFile())
	awaitCopy(t, location, account)
	later := x.awaitVeleroPhase(x.backUp("later", into("own")), velerov1.BackupPhaseCompleted)
	assert.True(t, bucketHas(t, account, x.namespace, later.Status.VeleroBackup.Name))
	synced := locationCondition(x.awaitAvailable(location), oadpv1alpha1.NonAdminConditionSecretSynced)
	assert.Equal(t, oadpv1alpha1.ReasonSecretUpdated, synced.Reason)
	x.remove(location)
	awaitEnd(t, nab)
}

// awaitCopy waits until the copy holds the account's credentials, and tells how long that took.
func awaitCopy(t *testing.T, location *nabsl, account env.Account) {
	t.Helper()
	begin, want := time.Now(), map[string][]byte{"cloud": account.CredentialsFile()}
	awaitSuccess(t, func(ctx context.Context) error {
		secret := &corev1.Secret{ObjectMeta: inOADP(nacuuid(location))}
		err := admin.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		if err == nil && !equality.Semantic.DeepEqual(want, secret.Data) {
			err = errors.New("the copy is not what the tenant's Secret holds") // no diff: it would show them
		}
		return err
	})
	t.Logf("copied after %s", time.Since(begin).Round(time.Second/10))
}

// Whatever is missing may come in any order.
func TestWhatALocationLacksMayComeLater(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "dave")
	account := newAccount(t)
	nab := x.backUp("first", into("own"))
	x.awaitWaiting(nab, "NonAdminBackupStorageLocation not found in the namespace")

	spec := locationSpec(account.Bucket, "credentials")
	spec.Credential = nil
	location := x.locate("own", spec)
	x.awaitRefused(location, "spec.bslSpec.credential is not set")
	x.secret("unrelated", []byte("nothing of interest")) // this crashed the Non-Admin Controller
	x.awaitWaiting(nab, "NonAdminBackupStorageLocation is not in created state")

	x.change(location, `{"spec":{"backupStorageLocationSpec":{"credential":{"name":"credentials","key":"cloud"}}}}`)
	seen := x.awaitRefused(location, `BSL credentials secret not found: secrets "credentials" not found`)
	assert.Empty(t, seen.Finalizers, "nothing to protect")
	checkNothingMade(t, location)

	secret := x.secret("credentials", []byte("\n"))
	x.awaitRefused(location, "there is nothing in it")
	x.rewrite(secret, account.CredentialsFile())
	x.awaitAvailable(location)
	x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)

	require.NoError(t, x.client.Delete(t.Context(), secret))
	x.completedInto("after-the-secret-went", "own")
	x.remove(location)
	awaitEnd(t, nab)
}

// completedInto backs up into a location of the tenant's and waits for the end.
func (x *tenant) completedInto(name, location string) *oadpv1alpha1.NonAdminBackup {
	x.t.Helper()
	return x.completed(name, into(location))
}

func TestALocationThatMakesNoSenseHarmsNobody(t *testing.T) {
	t.Parallel()
	worker, watcher := stack.Component(env.Worker).PID(), stack.Component(env.Watcher).PID()
	x := newTenant(t, "erin")
	spec := locationSpec("somewhere", "")
	spec.Credential = nil
	bare := x.locate("bare", spec)
	x.awaitRefused(bare, "spec.bslSpec.credential is not set")
	nonsense := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": oadpv1alpha1.GroupVersion.String(), "kind": oadpv1alpha1.KindNonAdminBackupStorageLocation,
		"metadata": map[string]any{"namespace": x.namespace, "name": "banana"},
		"spec": map[string]any{"backupStorageLocationSpec": map[string]any{
			"provider": "aws", "objectStorage": map[string]any{"bucket": "somewhere"}, "validationFrequency": "banana",
		}},
	}}
	require.NoError(t, x.client.Create(t.Context(), nonsense))
	banana := &nabsl{}
	require.NoError(t, x.client.Get(t.Context(), client.ObjectKeyFromObject(nonsense), banana))
	x.awaitRefused(banana, `invalid duration "banana"`)
	x.secret("opaque", []byte("content"))

	account := newAccount(t)
	neighbour := newTenant(t, "frank")
	location := neighbour.own(account)
	neighbour.awaitAvailable(location)
	assert.Equal(t, worker, stack.Component(env.Worker).PID(), "the worker has not crashed")
	assert.Equal(t, watcher, stack.Component(env.Watcher).PID(), "the watcher has not crashed")
	for _, each := range []*nabsl{bare, banana} {
		x.remove(each)
	}
	neighbour.remove(location)
}

// What somebody does by hand in the OADP namespace is put right.
func TestWhatIsChangedByHandComesBack(t *testing.T) {
	t.Parallel()
	account, other := newAccount(t), newAccount(t)
	x := newTenant(t, "grace")
	location := x.own(account)
	x.awaitAvailable(location)
	wanted, copied := madeFor(t, location)
	deeds := map[string]func() error{
		"the Velero BackupStorageLocation is deleted": func() error { return admin.Delete(t.Context(), wanted.DeepCopy()) },
		"the Velero BackupStorageLocation is changed": func() error {
			return byHand(t, wanted, `{"spec":{"objectStorage":{"prefix":"somewhere/else"},"accessMode":"ReadOnly"}}`)
		},
		"the Velero BackupStorageLocation names another Secret": func() error {
			return byHand(t, wanted, `{"spec":{"credential":{"name":"another","key":"cloud"}}}`)
		},
		"the copy is deleted": func() error { return admin.Delete(t.Context(), copied.DeepCopy()) },
		"the copy is changed": func() error {
			changed := copied.DeepCopy()
			changed.Data["cloud"], changed.Data["more"] = other.CredentialsFile(), []byte("more")
			return admin.Patch(t.Context(), changed, client.MergeFrom(copied))
		},
		"both are deleted": func() error {
			require.NoError(t, admin.Delete(t.Context(), copied.DeepCopy()))
			return admin.Delete(t.Context(), wanted.DeepCopy())
		},
	}
	for deed, do := range deeds {
		t.Run(deed, func(t *testing.T) {
			require.NoError(t, do())
			awaitCopy(t, location, account)
			awaitObject(t, admin, wanted, patience, "as it was", func(velero *velerov1.BackupStorageLocation, there bool) bool {
				return there && equality.Semantic.DeepEqual(wanted.Spec, velero.Spec)
			})
		})
	}
	x.awaitAvailable(location)
	x.completedInto("afterwards", "own")
	x.remove(location)
}

func byHand(t *testing.T, object client.Object, merge string) error {
	t.Helper()
	return admin.Patch(t.Context(), object.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(merge)))
}

// The administrator's policy is everybody's, so this is not parallel.
func TestEnforcedLocationSpec(t *testing.T) {
	x := newTenant(t, "heidi")
	account := newAccount(t)
	x.secret("credentials", account.CredentialsFile())
	setNonAdminPolicy(t, fmt.Sprintf("enforceBSLSpec:\n  provider: aws\n  accessMode: ReadWrite\n  config:\n"+
		"    region: %s\n    s3ForcePathStyle: \"true\"\n    s3Url: %s\n", stack.Storage().Region, stack.Storage().Endpoint))
	spec := locationSpec(account.Bucket, "credentials")
	spec.Provider, spec.Config = "", nil
	filled := x.locate("filled", spec)
	x.awaitAvailable(filled)
	velero, _ := madeFor(t, filled)
	assert.Equal(t, velerov1.BackupStorageLocationAccessModeReadWrite, velero.Spec.AccessMode, "the enforced field is filled in")

	spec = locationSpec(account.Bucket, "credentials")
	spec.AccessMode = velerov1.BackupStorageLocationAccessModeReadOnly
	refused := x.locate("refused", spec)
	x.awaitRefused(refused, "the administrator has restricted spec.backupStorageLocationSpec.accessMode field to: ReadWrite")

	setNonAdminPolicy(t, "{}")
	seen := x.awaitLocation(refused, "accepted under the new policy", func(now *nabsl) bool {
		return now.Status.Phase == oadpv1alpha1.NonAdminPhaseCreated
	})
	assert.Equal(t, metav1.ConditionTrue, locationCondition(seen, oadpv1alpha1.NonAdminConditionAccepted).Status)
	for _, location := range []*nabsl{filled, refused} {
		x.remove(location)
	}
}
