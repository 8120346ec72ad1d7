package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
)

// stored is the name of the Velero BackupStorageLocation of the tenant's location own.
var stored = fake.LocationName("own")

// inOwn is a NonAdminBackup into the tenant's own location, with all that the location consists of.
func inOwn() []client.Object {
	nab := fake.NAB(name)
	nab.Spec.BackupSpec.StorageLocation = "own"
	own := fake.NaBSL("own")
	own.Status.VeleroBackupStorageLocation = &oadpv1alpha1.VeleroBackupStorageLocation{NACUUID: stored}
	made := storage(stored)
	uid := made.UID
	made.ObjectMeta = owner.Location.Meta(own, stored, fake.OADPNamespace, stored)
	made.UID = uid
	made.Status.Phase = velerov1.BackupStorageLocationPhaseAvailable
	return []client.Object{nab, own, made, storage("other")}
}

func storage(in string) *velerov1.BackupStorageLocation {
	return &velerov1.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: in, UID: "uid-of-storage"}}
}

// Nothing of a backup can be reached whose location its tenant has deleted: a plain delete has nothing to protect.
func TestAPlainDeleteEndsWhenTheLocationIsGone(t *testing.T) {
	revoked := func(w *fake.World) { w.Remove(storage(stored)) }
	goes := func(w *fake.World) { w.Remove(fake.NaBSL("own")); revoked(w) }
	other := func(w *fake.World) { w.Remove(storage("other")) }
	tests := map[string]struct {
		steps    []func(*fake.World)
		wantGone bool
	}{
		"it is there":              {steps: []func(*fake.World){velero("Completed"), remove}},
		"it was gone before":       {steps: []func(*fake.World){velero("Completed"), goes, remove}, wantGone: true},
		"it goes afterwards":       {steps: []func(*fake.World){velero("Completed"), remove, goes}, wantGone: true},
		"it goes while it runs":    {steps: []func(*fake.World){velero("InProgress"), remove, goes}, wantGone: true},
		"it is revoked":            {steps: []func(*fake.World){velero("Completed"), remove, revoked}},
		"another one goes":         {steps: []func(*fake.World){velero("Completed"), remove, other}},
		"it goes without a delete": {steps: []func(*fake.World){velero("Completed"), goes}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			world := fake.New(t, inOwn()...)
			serve(t, world, test.steps)
			made := world.Velero(fake.VeleroName(name))
			if test.wantGone {
				assert.Nil(t, world.Read(name))
				assert.Nil(t, made, "as by force: the object goes, the data stay")
				assert.Empty(t, world.Requests(), "Velero is not asked to delete what it cannot reach")
				return
			}
			require.NotNil(t, made)
			require.NotNil(t, world.Read(name))
		})
	}
}

// deleteBackup promises that the data go: what cannot be done is not taken for done.
func TestADeleteBackupWaitsThoughTheLocationIsGone(t *testing.T) {
	s := newScenario(t, inOwn()...)
	s.after(time.Second, velero("InProgress"))
	s.after(2*time.Second, func(w *fake.World) {
		w.Remove(fake.NaBSL("own"))
		w.Remove(storage(stored))
		w.EditSpec(name, deleteBackup)
	})
	s.after(3*time.Second, velero("Completed"))
	asked := 0
	s.after(time.Minute, func(w *fake.World) {
		asked = len(w.Requests())
		w.AnswerRequests("backup storage location not found")
	})
	s.after(2*time.Minute, func(w *fake.World) {
		assert.NotNil(t, w.Read(name))
		w.EditSpec(name, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.ForceDeleteBackup = true })
	})
	runBackup(t, s)
	assert.Equal(t, 1, asked)
	assert.Nil(t, s.world.Read(name))
}
