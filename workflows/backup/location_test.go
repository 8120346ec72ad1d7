package backup_test

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
	"holdfast.dev/holdfast/workflows/workflowtest"
)

// stored is the name of the Velero BackupStorageLocation of the tenant's location own.
var stored = fake.LocationName("own")

// inOwn is a NonAdminBackup into the tenant's own location, with all that the location consists of.
func inOwn() []client.Object {
	nab := fake.NAB(workflowtest.Backup)
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
		"it is there":              {steps: []func(*fake.World){workflowtest.Velero("Completed"), remove}},
		"it was gone before":       {steps: []func(*fake.World){workflowtest.Velero("Completed"), goes, remove}, wantGone: true},
		"it goes afterwards":       {steps: []func(*fake.World){workflowtest.Velero("Completed"), remove, goes}, wantGone: true},
		"it goes while it runs":    {steps: []func(*fake.World){workflowtest.Velero("InProgress"), remove, goes}, wantGone: true},
		"it is revoked":            {steps: []func(*fake.World){workflowtest.Velero("Completed"), remove, revoked}},
		"another one goes":         {steps: []func(*fake.World){workflowtest.Velero("Completed"), remove, other}},
		"it goes without a delete": {steps: []func(*fake.World){workflowtest.Velero("Completed"), goes}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			world := fake.New(t, inOwn()...)
			serve(t, world, test.steps)
			made := world.Velero(fake.VeleroName(workflowtest.Backup))
			if test.wantGone {
				assert.Nil(t, world.Read(workflowtest.Backup))
				assert.Nil(t, made, "as by force: the object goes, the data stay")
				assert.Empty(t, world.Requests(), "Velero is not asked to delete what it cannot reach")
				return
			}
			require.NotNil(t, made)
			require.NotNil(t, world.Read(workflowtest.Backup))
		})
	}
}

// deleteBackup promises that the data go: what cannot be done is not taken for done.
func TestADeleteBackupWaitsThoughTheLocationIsGone(t *testing.T) {
	s := workflowtest.NewScenario(t, inOwn()...)
	s.After(time.Second, workflowtest.Velero("InProgress"))
	s.After(2*time.Second, func(w *fake.World) {
		w.Remove(fake.NaBSL("own"))
		w.Remove(storage(stored))
		w.EditSpec(workflowtest.Backup, deleteBackup)
	})
	s.After(3*time.Second, workflowtest.Velero("Completed"))
	asked := 0
	s.After(time.Minute, func(w *fake.World) {
		asked = len(w.Requests())
		w.AnswerRequests("backup storage location not found")
	})
	s.After(2*time.Minute, func(w *fake.World) {
		assert.NotNil(t, w.Read(workflowtest.Backup))
		w.EditSpec(workflowtest.Backup, func(spec *oadpv1alpha1.NonAdminBackupSpec) { spec.ForceDeleteBackup = true })
	})
	runBackup(t, s)
	assert.Equal(t, 1, asked)
	assert.Nil(t, s.World.Read(workflowtest.Backup))
}
