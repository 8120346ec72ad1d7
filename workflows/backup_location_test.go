package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/fake"
)

// lies has Velero put the backup into a location, as it does when it begins.
func lies(in string) func(*fake.World) {
	return func(w *fake.World) {
		made := w.Velero(fake.VeleroName(name))
		made.Spec.StorageLocation = in
		_ = w.Client.Update(context.Background(), made)
	}
}

func storage(in string) *velerov1.BackupStorageLocation {
	return &velerov1.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: in, UID: "uid-of-storage"}}
}

// Nothing of a backup can be reached whose location is gone: a plain delete has nothing to protect.
func TestAPlainDeleteEndsWhenTheLocationIsGone(t *testing.T) {
	goes := func(w *fake.World) { w.Remove(storage("there")) }
	tests := map[string]struct {
		steps    []func(*fake.World)
		wantGone bool
	}{
		"it is there":              {steps: []func(*fake.World){velero("Completed"), lies("there"), remove}},
		"it was gone before":       {steps: []func(*fake.World){velero("Completed"), lies("there"), goes, remove}, wantGone: true},
		"it goes afterwards":       {steps: []func(*fake.World){velero("Completed"), lies("there"), remove, goes}, wantGone: true},
		"it goes while it runs":    {steps: []func(*fake.World){velero("InProgress"), lies("there"), remove, goes}, wantGone: true},
		"another one goes":         {steps: []func(*fake.World){velero("Completed"), lies("other"), remove, goes}},
		"it goes without a delete": {steps: []func(*fake.World){velero("Completed"), lies("there"), goes}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			world := fake.New(t, fake.NAB(name), storage("there"), storage("other"))
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
	s := newScenario(t, fake.NAB(name), storage("there"))
	s.after(time.Second, velero("InProgress"))
	s.after(2*time.Second, func(w *fake.World) {
		lies("there")(w)
		w.Remove(storage("there"))
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
	s.run(t)
	assert.Equal(t, 1, asked)
	assert.Nil(t, s.world.Read(name))
}
