package backup_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
)

const (
	name    = "nightly"
	victims = "crew-nightly-f47ac10b-58cc-4372-a567-0e02b2c3d479"
	byNAC   = "team-nightly-11111111-58cc-4372-a567-0e02b2c3d479"
)

// ours is the name of the Velero Backup that Holdfast makes for the object under test.
var ours = fake.VeleroName(name)

// made returns a Velero Backup with an origin, as a controller makes it.
func made(name, originNamespace, originName string) *velerov1.Backup {
	return &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{
		Namespace: fake.OADPNamespace, Name: name, UID: "uid-of-backup",
		Labels: map[string]string{
			"openshift.io/oadp": "True", "openshift.io/oadp-nab-origin-nacuuid": name,
			"app.kubernetes.io/managed-by": "oadp-nac-controller",
		},
		Annotations: map[string]string{
			"openshift.io/oadp-nab-origin-namespace": originNamespace, "openshift.io/oadp-nab-origin-name": originName,
		},
	}}
}

func without(backup *velerov1.Backup, key string) *velerov1.Backup {
	delete(backup.Labels, key)
	delete(backup.Annotations, key)
	return backup
}

// begin has an attempt have come as far as our finalizer.
func begin(nab *oadpv1alpha1.NonAdminBackup) { nab.Finalizers = []string{oadpv1alpha1.NabFinalizer} }

func statusNames(nacuuid string) func(*oadpv1alpha1.NonAdminBackup) {
	return func(nab *oadpv1alpha1.NonAdminBackup) {
		nab.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{NACUUID: nacuuid, Name: nacuuid, Namespace: fake.OADPNamespace}
	}
}

func labelNames(nacuuid string) func(*oadpv1alpha1.NonAdminBackup) {
	return func(nab *oadpv1alpha1.NonAdminBackup) {
		nab.Labels = map[string]string{"openshift.io/oadp-nab-synced-from-nacuuid": nacuuid}
	}
}

// What a tenant's status or label says is a claim. A Velero Backup belongs to an object only if it says so itself: it
// lies where tenants cannot write.
func TestAVeleroBackupBelongsToTheObjectThatItNamesAsItsOrigin(t *testing.T) {
	type edit = func(*oadpv1alpha1.NonAdminBackup)
	victim := func() *velerov1.Backup { return made(victims, "crew", name) }
	tests := map[string]struct {
		claims      []edit
		there       []*velerov1.Backup
		wantName    string
		wantFound   bool
		wantForeign bool
	}{
		"nothing made yet":                  {wantName: ours},
		"made, not recorded yet":            {there: []*velerov1.Backup{made(ours, "team", name)}, wantName: ours, wantFound: true},
		"made and recorded":                 {[]edit{statusNames(ours)}, []*velerov1.Backup{made(ours, "team", name)}, ours, true, false},
		"recorded, but gone":                {[]edit{statusNames(ours)}, nil, ours, false, false},
		"somebody else's under our name":    {there: []*velerov1.Backup{made(ours, "crew", name)}, wantName: ours, wantForeign: true},
		"another object's under our name":   {there: []*velerov1.Backup{made(ours, "team", "weekly")}, wantName: ours, wantForeign: true},
		"an admin's under our name":         {there: []*velerov1.Backup{{ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: ours}}}, wantName: ours, wantForeign: true},
		"ours without OADP's label":         {there: []*velerov1.Backup{without(made(ours, "team", name), "openshift.io/oadp")}, wantName: ours, wantForeign: true},
		"ours without its origin's name":    {there: []*velerov1.Backup{without(made(ours, "team", name), "openshift.io/oadp-nab-origin-name")}, wantName: ours, wantForeign: true},
		"ours without its origin namespace": {there: []*velerov1.Backup{without(made(ours, "team", name), "openshift.io/oadp-nab-origin-namespace")}, wantName: ours, wantForeign: true},

		"made by the non-admin controller": {[]edit{statusNames(byNAC)}, []*velerov1.Backup{made(byNAC, "team", name)}, byNAC, true, false},
		"made by the non-admin controller for another object": {
			[]edit{statusNames(byNAC)}, []*velerov1.Backup{made(byNAC, "team", "weekly")}, ours, false, false,
		},
		"made by the non-admin controller, but without its label": {
			[]edit{statusNames(byNAC)}, []*velerov1.Backup{without(made(byNAC, "team", name), "openshift.io/oadp")}, ours, false, false,
		},
		"made by the non-admin controller and gone": {[]edit{statusNames(byNAC)}, nil, ours, false, false},

		"forged status":                          {[]edit{statusNames(victims)}, []*velerov1.Backup{victim()}, ours, false, false},
		"forged status beside the own":           {[]edit{statusNames(victims)}, []*velerov1.Backup{victim(), made(ours, "team", name)}, ours, true, false},
		"forged label":                           {[]edit{labelNames(victims)}, []*velerov1.Backup{victim()}, victims, false, true},
		"label that names nothing":               {[]edit{labelNames(victims)}, nil, victims, false, false},
		"forged status and label":                {[]edit{statusNames(victims), labelNames(victims)}, []*velerov1.Backup{victim()}, victims, false, true},
		"forged status, label that names ours":   {[]edit{statusNames(victims), labelNames(byNAC)}, []*velerov1.Backup{victim(), made(byNAC, "team", name)}, byNAC, true, false},
		"forged label, status names ours":        {[]edit{statusNames(byNAC), labelNames(victims)}, []*velerov1.Backup{victim(), made(byNAC, "team", name)}, byNAC, true, false},
		"forged label after ours was recorded":   {[]edit{statusNames(ours), labelNames(victims)}, []*velerov1.Backup{victim(), made(ours, "team", name)}, ours, true, false},
		"forged label, ours recorded, not there": {[]edit{statusNames(ours), labelNames(victims)}, []*velerov1.Backup{victim()}, ours, false, false},
		"synced from the object store":           {[]edit{labelNames(byNAC)}, []*velerov1.Backup{made(byNAC, "team", name)}, byNAC, true, false},
		"synced, of another object of the same tenant": {
			[]edit{labelNames(byNAC)}, []*velerov1.Backup{made(byNAC, "team", "weekly")}, byNAC, false, true,
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			nab := fake.NAB(name)
			begin(nab)
			for _, claim := range test.claims {
				claim(nab)
			}
			objects := []client.Object{nab}
			for _, backup := range test.there {
				objects = append(objects, backup)
			}
			world := fake.New(t, objects...)
			got, err := world.Backups.Gatherer.Gather(t.Context(), fake.Ref(name))
			require.NoError(t, err)
			assert.Equal(t, test.wantName, got.BackupName)
			assert.Equal(t, test.wantForeign, got.Foreign)
			if !test.wantFound {
				assert.Nil(t, got.Backup)
				assert.False(t, got.View(now).Velero.Exists)
				return
			}
			require.NotNil(t, got.Backup)
			assert.Equal(t, test.wantName, got.Backup.Name)
			assert.True(t, got.View(now).Velero.Exists)
		})
	}
}

// A Backup elsewhere than in the OADP namespace was made by a tenant, whatever its annotations say.
func TestAVeleroBackupInATenantsNamespaceIsNobodys(t *testing.T) {
	elsewhere := made(ours, "team", name)
	elsewhere.Namespace = fake.Namespace
	begun := fake.NAB(name)
	begin(begun)
	got, err := fake.New(t, begun, elsewhere).Backups.Gatherer.Gather(t.Context(), fake.Ref(name))
	require.NoError(t, err)
	assert.Nil(t, got.Backup)
	assert.False(t, got.Foreign)
}

// An object recreated under an old name is a new backup: the old one's Velero Backup is not taken for its own.
func TestARecreatedObjectIsANewBackup(t *testing.T) {
	nab := fake.NAB(name)
	begin(nab)
	nab.UID = "uid-2"
	ref := fake.Ref(name)
	ref.UID = "uid-2"
	got, err := fake.New(t, nab, made(ours, "team", name)).Backups.Gatherer.Gather(t.Context(), ref)
	require.NoError(t, err)
	assert.NotEqual(t, ours, got.BackupName)
	assert.Nil(t, got.Backup)
	assert.False(t, got.Foreign)
}

// The API server is never asked for a name that no object can have: it would not answer "not found", for ever.
func TestAStatusWithANameThatNoObjectHasIsIgnored(t *testing.T) {
	for title, recorded := range map[string]string{
		"a path":         "../../../api/v1/secrets",
		"an encoding":    "a%2Fb",
		"a dot":          ".",
		"too long":       strings.Repeat("a", 254),
		"nothing at all": "",
	} {
		t.Run(title, func(t *testing.T) {
			nab := fake.NAB(name)
			statusNames(recorded)(nab)
			world := fake.New(t, nab, made(ours, "team", name))
			refuseImpossibleNames(world)
			got, err := world.Backups.Gatherer.Gather(t.Context(), fake.Ref(name))
			require.NoError(t, err)
			assert.Equal(t, ours, got.BackupName)
			assert.NotNil(t, got.Backup)
		})
	}
}

// A label that is not a valid one by the non-admin controller's rule says nothing.
func TestAnEmptyLabelIsNone(t *testing.T) {
	nab := fake.NAB(name)
	labelNames("")(nab)
	got, err := fake.New(t, nab).Backups.Gatherer.Gather(t.Context(), fake.Ref(name))
	require.NoError(t, err)
	assert.Empty(t, got.SyncedFrom)
	assert.Equal(t, ours, got.BackupName)
}

func TestOriginIsAskedOfAnything(t *testing.T) {
	var noBackup *velerov1.Backup
	var noRequest *velerov1.DeleteBackupRequest
	assert.False(t, owner.Backup.Names(nil, "team", name))
	assert.False(t, owner.Backup.Names(noBackup, "team", name))
	assert.False(t, owner.Backup.Names(noRequest, "team", name))
	assert.False(t, owner.Backup.Names(&velerov1.Backup{}, "", ""), "nobody's is not nobody's in particular")
	assert.True(t, owner.Backup.Names(made("b", "team", name), "team", name))
}

// A tenant can write into its own bucket what names another tenant's object, under the name that its Velero Backup had.
func TestABackupInAnotherTenantsLocationIsNobodys(t *testing.T) {
	const team, crew = "team-own-3f2504e0-4f89-41d3-9a0c-0305e82c3301", "crew-own-7c9e6679-7425-40de-944b-e07fc1f90ae7"
	location := func(namespace, name string) *velerov1.BackupStorageLocation {
		own := fake.NaBSL("own")
		own.Namespace = namespace
		return &velerov1.BackupStorageLocation{ObjectMeta: owner.Location.Meta(own, name, fake.OADPNamespace, name)}
	}
	admins := func(name string) *velerov1.BackupStorageLocation {
		return &velerov1.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: name}}
	}
	stripped := location("team", team)
	stripped.Annotations = nil
	for title, test := range map[string]struct {
		in    string
		there *velerov1.BackupStorageLocation
		own   bool
	}{
		"in an administrator's":                  {"default", admins("default"), true},
		"in one that nobody has made for anyone": {crew, admins(crew), true},
		"in the tenant's own":                    {team, location("team", team), true},
		"in the tenant's own, which is gone":     {team, nil, true},
		"in another's":                           {crew, location("crew", crew), false},
		"in another's, which is gone":            {crew, nil, false},
		"in one whose marks somebody took off":   {team, stripped, false},
		"not begun":                              {"", nil, true},
	} {
		for title, claim := range map[string]func(*oadpv1alpha1.NonAdminBackup){
			title + ", under our name": statusNames(ours), title + ", recorded": statusNames(byNAC), title + ", synced": labelNames(byNAC),
		} {
			t.Run(title, func(t *testing.T) {
				nab := fake.NAB(name)
				claim(nab)
				called := byNAC
				if recorded := nab.Status.VeleroBackup; recorded != nil {
					called = recorded.NACUUID
				}
				backup := made(called, "team", name)
				backup.Spec.StorageLocation = test.in
				world := fake.New(t, nab, backup)
				if test.there != nil {
					require.NoError(t, world.Client.Create(t.Context(), test.there.DeepCopy()))
				}
				reads := 0
				world.FailReads(func(object runtime.Object) error {
					if _, is := object.(*velerov1.BackupStorageLocation); is {
						reads++
					}
					return nil
				})
				got, err := world.Backups.Gatherer.Gather(t.Context(), fake.Ref(name))
				require.NoError(t, err)
				assert.Equal(t, test.own, got.Backup != nil)
				finder := velero.Finder{Reader: world.Client, ClusterID: fake.Cluster, OADPNamespace: fake.OADPNamespace}
				found, err := finder.Backup(t.Context(), nab)
				require.NoError(t, err)
				assert.Equal(t, test.own, found.Made != nil, "a restore and a download find it so")
				assert.Equal(t, test.own, got.View(now).Velero.Exists)
				if test.in == "default" || test.in == "" {
					assert.Zero(t, reads, "an ordinary backup costs no request more")
				}
			})
		}
	}
}

// A location that cannot be read is neither the tenant's nor another's.
func TestALocationThatCannotBeReadIsAnError(t *testing.T) {
	velero := made(ours, "team", name)
	velero.Spec.StorageLocation = "team-own-3f2504e0-4f89-41d3-9a0c-0305e82c3301"
	begun := fake.NAB(name)
	begin(begun)
	world := fake.New(t, begun, velero)
	world.FailReads(func(object runtime.Object) error {
		if _, is := object.(*velerov1.BackupStorageLocation); is {
			return fake.ErrAway
		}
		return nil
	})
	_, err := world.Backups.Gatherer.Gather(t.Context(), fake.Ref(name))
	require.ErrorIs(t, err, fake.ErrAway)
}
