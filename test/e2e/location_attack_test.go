package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// neighbour is another tenant with a location and a backup in it, and how all of it must look after every attack.
type neighbour struct {
	*tenant
	account  env.Account
	location *nabsl
	velero   *velerov1.BackupStorageLocation
	copied   *corev1.Secret
	objects  []env.Object
	backups  []velerov1.Backup
}

func newNeighbour(t *testing.T) *neighbour {
	t.Helper()
	v := &neighbour{tenant: newTenant(t, "carol"), account: newAccount(t)}
	v.location = v.own(v.account)
	v.awaitAvailable(v.location)
	v.completedInto("treasure", "own")
	v.velero, v.copied = madeFor(t, v.location)
	v.objects, v.backups = v.stored(t)
	return v
}

// stored is what the bucket holds. Velero may finalize a backup twice, if its cache is late, and writes velero-backup.json again
// with what others have noted meanwhile: of that file the backup counts, not its size.
func (v *neighbour) stored(t *testing.T) (objects []env.Object, backups []velerov1.Backup) {
	t.Helper()
	objects, err := stack.BucketObjects(v.account, "")
	require.NoError(t, err)
	for i, object := range objects {
		if !strings.HasSuffix(object.Key, "/velero-backup.json") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(v.account.Dir, object.Key))
		require.NoError(t, err)
		var found velerov1.Backup
		require.NoError(t, json.Unmarshal(content, &found))
		objects[i].Size = 0
		backups = append(backups, velerov1.Backup{
			ObjectMeta: metav1.ObjectMeta{Name: found.Name, UID: found.UID, Labels: found.Labels}, Spec: found.Spec,
		})
	}
	return objects, backups
}

func (v *neighbour) checkUntouched(t *testing.T) {
	t.Helper()
	velero, secret := madeFor(t, v.location)
	assert.Equal(t, v.velero.UID, velero.UID)
	assert.Equal(t, v.velero.Spec, velero.Spec)
	assert.Equal(t, v.velero.Annotations, velero.Annotations)
	assert.Equal(t, velerov1.BackupStorageLocationPhaseAvailable, velero.Status.Phase)
	assert.Equal(t, v.copied.UID, secret.UID)
	assert.Equal(t, v.copied.ResourceVersion, secret.ResourceVersion, "the copy of the victim's Secret was written")
	objects, backups := v.stored(t)
	assert.Equal(t, v.objects, objects)
	assert.Equal(t, v.backups, backups)
}

func TestALocationCannotReachWhatIsNotTheTenants(t *testing.T) {
	t.Parallel()
	victim := newNeighbour(t)
	marker := filepath.Join(t.TempDir(), "ran")
	account := newAccount(t)
	keys := string(account.CredentialsFile())
	tests := map[string]struct {
		spec    func(*velerov1.BackupStorageLocationSpec)
		content string // of the Secret, if it is not the tenant's keys
		want    string
	}{
		"by another namespace's Secret": {
			spec: func(spec *velerov1.BackupStorageLocationSpec) {
				spec.Credential.Name = victim.namespace + "/credentials"
			},
			want: "credential.name is invalid",
		},
		"by a Secret named with a path": {
			spec: func(spec *velerov1.BackupStorageLocationSpec) {
				spec.Credential.Name = "../../" + victim.namespace + "/secrets/credentials"
			},
			want: "credential.name is invalid",
		},
		"by the name of the copy of a Secret": {
			spec: func(spec *velerov1.BackupStorageLocationSpec) { spec.Credential.Name = victim.copied.Name },
			want: "BSL credentials secret not found",
		},
		"by a prefix": {
			spec: func(spec *velerov1.BackupStorageLocationSpec) { spec.ObjectStorage.Prefix = "../" + victim.namespace },
			want: "prefix is invalid: must not contain '..'",
		},
		"by a bucket with a path": {
			spec: func(spec *velerov1.BackupStorageLocationSpec) { spec.ObjectStorage.Bucket += "/" + victim.namespace },
			want: "bucket is invalid",
		},
		"as the default": {
			spec: func(spec *velerov1.BackupStorageLocationSpec) { spec.Default = true },
			want: "cannot be used as a default BSL",
		},
		"by a file of Velero's": {
			spec: func(spec *velerov1.BackupStorageLocationSpec) { spec.Config["credentialsFile"] = "/etc/passwd" },
			want: "config.credentialsFile is restricted",
		},
		"by a key file of Velero's": {
			spec: func(spec *velerov1.BackupStorageLocationSpec) {
				spec.Config["customerKeyEncryptionFile"] = "/etc/passwd"
			},
			want: "config.customerKeyEncryptionFile is restricted",
		},
		"by a Secret of Velero's": {
			spec: func(spec *velerov1.BackupStorageLocationSpec) {
				spec.Config["customerKeyEncryptionSecret"] = victim.copied.Name + "/cloud"
			},
			want: "config.customerKeyEncryptionSecret is restricted",
		},
		"by another repository": {
			spec: func(spec *velerov1.BackupStorageLocationSpec) {
				spec.Config["resticRepoPrefix"] = "s3:" + stack.Storage().Endpoint + "/" + victim.account.Bucket
			},
			want: "config.resticRepoPrefix is restricted",
		},
		"by another bucket in the config": {
			spec: func(spec *velerov1.BackupStorageLocationSpec) { spec.Config["bucket"] = victim.account.Bucket },
			want: "config.bucket is restricted",
		},
		"by another prefix in the config": {
			spec: func(spec *velerov1.BackupStorageLocationSpec) { spec.Config["prefix"] = victim.namespace },
			want: "config.prefix is restricted",
		},
		"by a certificate of Velero's": {
			spec: func(spec *velerov1.BackupStorageLocationSpec) {
				spec.ObjectStorage.CACertRef = &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: victim.copied.Name}, Key: "cloud",
				}
			},
			want: "objectStorage.caCertRef is restricted",
		},
		"by a profile of Velero's": {
			spec:    func(spec *velerov1.BackupStorageLocationSpec) { spec.Config["profile"] = "default" },
			content: strings.Replace(keys, "[default]", "[mine]", 1),
			want:    "there is no [default], which is the profile that the location uses",
		},
		"by a program in the credentials": {
			content: fmt.Sprintf("[default]\ncredential_process = /usr/bin/touch %s\n", marker),
			want:    "line 2 sets credential_process, which is not allowed",
		},
		"by a program beside the keys": {
			content: keys + fmt.Sprintf("credential_process = /usr/bin/touch %s\n", marker),
			want:    "sets credential_process, which is not allowed",
		},
		"by the identity of Velero's machine": {
			content: "[default]\nrole_arn = arn:aws:iam::1:role/x\ncredential_source = Ec2InstanceMetadata\n",
			want:    "sets role_arn, which is not allowed",
		},
	}
	x := newTenant(t, "dave")
	number := 0
	for name, test := range tests {
		number++
		label := fmt.Sprintf("attack-%d", number)
		t.Run(name, func(t *testing.T) {
			if test.content == "" {
				test.content = keys
			}
			x.secret(label, []byte(test.content))
			spec := locationSpec(account.Bucket, label)
			if test.spec != nil {
				test.spec(spec)
			}
			location := x.locate(label, spec)
			x.awaitRefused(location, test.want)
			checkNothingMade(t, location)
			x.remove(location)
		})
	}
	victim.checkUntouched(t)
	_, err := os.Stat(marker)
	require.ErrorIs(t, err, os.ErrNotExist, "a program of the tenant's was run")
}

// A location that works, and credentials that turn into an attack: the copy stays as it was.
func TestCredentialsThatTurnAreNotCopied(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "ran")
	x := newTenant(t, "dave")
	account := newAccount(t)
	secret := x.secret("credentials", account.CredentialsFile())
	location := x.locate("own", locationSpec(account.Bucket, "credentials"))
	x.awaitAvailable(location)
	x.rewrite(secret, fmt.Appendf(nil, "[default]\ncredential_process = /usr/bin/touch %s\n", marker))
	x.awaitLocation(location, "told that the Secret was not copied", func(now *nabsl) bool {
		synced := locationCondition(now, oadpv1alpha1.NonAdminConditionSecretSynced)
		return synced != nil && synced.Status == metav1.ConditionFalse && synced.Reason == oadpv1alpha1.ReasonSecretSyncFailed
	})
	awaitCopy(t, location, account)
	x.completedInto("with-the-old-keys", "own")
	_, err := os.Stat(marker)
	require.ErrorIs(t, err, os.ErrNotExist)
	x.remove(location)
}

func TestAForgedLocationStatusIsRefused(t *testing.T) {
	t.Parallel()
	victim := newNeighbour(t)
	for name, attack := range map[string]func(t *testing.T, x *tenant, location *nabsl){
		"by an edit": func(_ *testing.T, x *tenant, location *nabsl) {
			x.change(location, `{"metadata":{"labels":{"look":"here"}}}`)
			x.awaitLocation(location, "the status is corrected", func(now *nabsl) bool {
				return now.Status.VeleroBackupStorageLocation.NACUUID == nacuuid(location)
			})
			x.completedInto("afterwards", "own")
		},
		"by a backup": func(t *testing.T, x *tenant, _ *nabsl) {
			nab := x.backUp("into-the-victims", into("own"))
			seen := x.await(nab, "refused or in the own location", func(now *oadpv1alpha1.NonAdminBackup) bool {
				return now.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff || veleroPhase(now) == velerov1.BackupPhaseCompleted ||
					takenUpTwice(now) // then, too, it is said where it went
			})
			if made := seen.Status.VeleroBackup; made != nil && made.Spec != nil {
				assert.NotEqual(t, victim.velero.Name, made.Spec.StorageLocation)
			}
		},
		"by a new Secret": func(t *testing.T, x *tenant, location *nabsl) {
			account := newAccount(t)
			x.rewrite(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "credentials"}, Data: map[string][]byte{},
			}, account.CredentialsFile())
			awaitCopy(t, location, account)
		},
		"by its deletion": func(*testing.T, *tenant, *nabsl) {},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTenant(t, "dave")
			location := x.own(newAccount(t))
			x.awaitAvailable(location)
			awaitEndOfLocation(t, location)
			forged := fmt.Sprintf(`{"status":{"veleroBackupStorageLocation":{"nacuuid":%[1]q,"name":%[1]q}}}`, victim.velero.Name)
			err := x.client.Status().Patch(t.Context(), location.DeepCopy(), mergePatch(forged))
			assert.True(t, apierrors.IsForbidden(err), "a tenant has no right to a status: %v", err)
			require.NoError(t, admin.Status().Patch(t.Context(), location.DeepCopy(), mergePatch(forged)), "so the forger has got hold of one")
			attack(t, x, location)
			victim.checkUntouched(t)
			x.remove(location)
			victim.checkUntouched(t)
		})
	}
}

// What the tenant writes in its own namespace says nothing about what Holdfast has made.
func TestForgedOriginsAndForeignNamesAreRefused(t *testing.T) {
	t.Parallel()
	victim := newNeighbour(t)
	x := newTenant(t, "dave")
	origin := metav1.ObjectMeta{
		Namespace: x.namespace, Name: victim.velero.Name, Labels: victim.velero.Labels, Annotations: victim.velero.Annotations,
	}
	require.NoError(t, x.client.Create(t.Context(), &corev1.Secret{ObjectMeta: origin, Data: map[string][]byte{"cloud": []byte("forged")}}))
	forged := &nabsl{ObjectMeta: origin, Spec: oadpv1alpha1.NonAdminBackupStorageLocationSpec{
		BackupStorageLocationSpec: locationSpec(victim.account.Bucket, victim.velero.Name),
	}}
	require.NoError(t, x.client.Create(t.Context(), forged))
	x.awaitRefused(forged, "cannot be used: line 1 ") // what its own Secret holds
	checkNothingMade(t, forged)
	x.remove(forged)
	err := x.client.Create(t.Context(), &velerov1.BackupStorageLocation{ObjectMeta: origin, Spec: victim.velero.Spec})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	for name, storage := range map[string]string{
		"by-its-name":           victim.location.Name,
		"by-namespace-and-name": victim.namespace + "/" + victim.location.Name,
		"by-velero-name":        victim.velero.Name,
		"by-a-path":             "../" + victim.namespace + "/" + victim.location.Name,
	} {
		nab := x.backUp(name, into(storage))
		accepted := x.awaitCondition(nab, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonInvalidBackupSpec)
		assert.Regexp(t, "NonAdminBackupStorageLocation not found in the namespace|storageLocation is invalid", accepted.Message)
	}
	assert.Empty(t, veleroBackupsOf(t, x.namespace))
	victim.checkUntouched(t)
	victim.remove(victim.location)
}
