package location_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/location/locationtest"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

var errInvalidLocation = apierrors.NewInvalid(velerov1.SchemeGroupVersion.WithKind("BackupStorageLocation").GroupKind(), "b",
	field.ErrorList{field.Invalid(field.NewPath("spec", "config"), "x", "must be something else")})

// refuseLocations: the API server does not take Velero BackupStorageLocations.
func refuseLocations(world *fake.World) (asked *int) {
	asked = new(int)
	world.Fail(func(verb string, object client.Object) error {
		if _, is := object.(*velerov1.BackupStorageLocation); is && verb != "delete" {
			*asked++
			return errInvalidLocation
		}
		return nil
	})
	return asked
}

func TestALocationThatTheAPIServerRefusesSaysSo(t *testing.T) {
	const refused = "BackupStorageLocationSynced=False/BackupStorageLocationSyncError"
	t.Run("when it is made", func(t *testing.T) {
		world := locationtest.Place(t, false)
		asked := refuseLocations(world)
		locationtest.Settle(t, world)
		assert.Contains(t, locationtest.Conditions(world), refused)
		assert.Contains(t, message(world, oadpv1alpha1.NonAdminConditionBackupStorageLocationSynced), "must be something else")
		assert.LessOrEqual(t, *asked, 2, "it does not ask for ever")
		world.Fail(nil)
		locationtest.EditLocation(locationtest.Bucket("second"))(world)
		locationtest.Settle(t, world)
		assert.NotContains(t, locationtest.Conditions(world), refused)
		assert.Equal(t, "second", locationtest.BucketOf(world))
	})
	t.Run("when it is changed: the one before stays, and its Secret follows", func(t *testing.T) {
		world := locationtest.Place(t, false)
		locationtest.Settle(t, world)
		refuseLocations(world)
		locationtest.EditLocation(locationtest.Bucket("second"))(world)
		locationtest.Settle(t, world)
		assert.Contains(t, locationtest.Conditions(world), refused)
		locationtest.Rotate("Second")(world)
		locationtest.Settle(t, world)
		assert.Equal(t, "bucket", locationtest.BucketOf(world))
		assert.Equal(t, "Second", locationtest.Copied(world))
	})
	t.Run("when an update is approved", func(t *testing.T) {
		world := locationtest.Approved(t)
		locationtest.EditLocation(locationtest.Bucket("second"))(world)
		locationtest.Settle(t, world)
		refuseLocations(world)
		locationtest.Decide("approve")(world)
		locationtest.Settle(t, world)
		assert.Contains(t, locationtest.Conditions(world), refused)
		world.Fail(nil)
		locationtest.Revoke(world)
		locationtest.Settle(t, world)
		assert.Empty(t, locationtest.BucketOf(world))
		assert.NotContains(t, locationtest.Conditions(world), refused)
	})
}

// stranger returns an object of the name of what is made for the location, of somebody else's.
func stranger[T client.Object](object T) T {
	object.SetNamespace(fake.OADPNamespace)
	object.SetName(fake.LocationName(workflowtest.Backup))
	object.SetUID("uid-of-a-stranger")
	return object
}

func TestWhatIsNotOursIsLeftAlone(t *testing.T) {
	tests := map[string]func() client.Object{
		"a Velero BackupStorageLocation": func() client.Object { return stranger(&velerov1.BackupStorageLocation{}) },
		"a Secret":                       func() client.Object { return stranger(&corev1.Secret{Data: map[string][]byte{"a": {1}}}) },
		"an approval request":            func() client.Object { return stranger(&locationtest.Request{}) },
	}
	for title, make := range tests {
		for approval, word := range map[bool]string{false: "", true: ", with approval"} {
			t.Run(title+word, func(t *testing.T) {
				world := locationtest.Place(t, approval, make())
				locationtest.Settle(t, world)
				before := make()
				require.NoError(t, world.Client.Get(t.Context(), client.ObjectKeyFromObject(before), before))
				assert.EqualValues(t, "uid-of-a-stranger", before.GetUID())
				assert.Contains(t, message(world, oadpv1alpha1.NonAdminConditionAccepted), "ask an administrator to remove it")
				assert.Equal(t, oadpv1alpha1.NonAdminPhaseBackingOff, world.Location(workflowtest.Backup).Status.Phase)

				world.Remove(before)
				locationtest.Settle(t, world)
				assert.Contains(t, locationtest.Conditions(world), "Accepted=True/BslSpecValidation")
				locationtest.RemoveLocation(world)
				locationtest.Settle(t, world)
				assert.Nil(t, world.Location(workflowtest.Backup))
			})
		}
	}
}

// Somebody takes our marks off what was made: it is nobody's then, and nothing turns in circles about it.
func TestWhatHasLostOurMarksIsLeftAlone(t *testing.T) {
	for _, approval := range []bool{false, true} {
		for title, get := range map[string]func(*fake.World) client.Object{
			"the Velero BackupStorageLocation": func(w *fake.World) client.Object { return w.VeleroLocation(workflowtest.Backup) },
			"the copy of the Secret":           func(w *fake.World) client.Object { return w.Copy(workflowtest.Backup) },
		} {
			t.Run(title, func(t *testing.T) {
				world := locationtest.Place(t, approval)
				locationtest.Settle(t, world)
				if approval {
					locationtest.Decide("approve")(world)
					locationtest.Settle(t, world)
				}
				made := get(world)
				made.SetLabels(nil)
				require.NoError(t, world.Client.Update(t.Context(), made))
				locationtest.Settle(t, world)
				assert.NotNil(t, get(world))
				assert.Contains(t, message(world, oadpv1alpha1.NonAdminConditionAccepted), "ask an administrator to remove it")

				world.Remove(get(world))
				locationtest.Settle(t, world)
				assert.Equal(t, "bucket", locationtest.BucketOf(world))
				assert.Equal(t, locationtest.SecretMark, locationtest.Copied(world))
				assert.Contains(t, locationtest.Conditions(world), "Accepted=True/BslSpecValidation")
			})
		}
	}
}

// The tenant writes another tenant's name, or its own of before, into the status.
func TestAForgedNameInTheStatusReachesNobody(t *testing.T) {
	const victim = "crew-nightly-f47ac10b-58cc-4372-a567-0e02b2c3d479"
	victims := func(object client.Object) client.Object {
		object.SetNamespace(fake.OADPNamespace)
		object.SetName(victim)
		object.SetUID("uid-of-the-victims")
		object.SetLabels(map[string]string{
			oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue, oadpv1alpha1.NabslOriginNACUUIDLabel: victim,
		})
		object.SetAnnotations(map[string]string{
			oadpv1alpha1.NabslOriginNamespaceAnnotation: "crew", oadpv1alpha1.NabslOriginNameAnnotation: workflowtest.Backup,
		})
		return object
	}
	for title, forged := range map[string]string{"of another tenant": victim, "that no object can have": "../x", "of nobody": "nobody"} {
		for approval, word := range map[bool]string{false: "", true: ", with approval"} {
			t.Run(title+word, func(t *testing.T) {
				objects := []client.Object{victims(&velerov1.BackupStorageLocation{}), victims(&corev1.Secret{}), victims(&locationtest.Request{})}
				world := locationtest.Place(t, approval, objects...)
				forge := func() {
					object := world.Location(workflowtest.Backup)
					object.Status.VeleroBackupStorageLocation = &oadpv1alpha1.VeleroBackupStorageLocation{
						NACUUID: forged, Name: forged, Namespace: fake.OADPNamespace,
					}
					require.NoError(t, world.Client.Status().Update(t.Context(), object))
				}
				forge()
				locationtest.Settle(t, world)
				assert.Equal(t, fake.LocationName(workflowtest.Backup), world.Location(workflowtest.Backup).Status.VeleroBackupStorageLocation.NACUUID)
				if approval {
					locationtest.Decide("approve")(world)
					locationtest.Settle(t, world)
				}
				assert.Equal(t, "bucket", locationtest.BucketOf(world))
				forge()
				locationtest.Settle(t, world)
				locationtest.RemoveLocation(world)
				forge()
				locationtest.Settle(t, world)
				assert.Nil(t, world.Location(workflowtest.Backup))
				assert.Empty(t, locationtest.BucketOf(world))
				for _, object := range objects {
					before := object.GetResourceVersion()
					require.NoError(t, world.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
					assert.Equal(t, "999", object.GetResourceVersion(), "untouched, was %s", before)
				}
			})
		}
	}
}

// A tenant's replace drops our finalizer, and may leave the spec invalid: the object must not vanish without what was made.
func TestADroppedFinalizerComesBack(t *testing.T) {
	for title, spoil := range map[string]func(*locationtest.VeleroLS){
		"the spec valid":   func(*locationtest.VeleroLS) {},
		"the spec invalid": func(spec *locationtest.VeleroLS) { spec.ObjectStorage.Prefix = "../crew" },
	} {
		t.Run(title, func(t *testing.T) {
			world := locationtest.Place(t, false)
			locationtest.Settle(t, world)
			object := world.Location(workflowtest.Backup)
			object.Finalizers = nil
			spoil(object.Spec.BackupStorageLocationSpec)
			require.NoError(t, world.Client.Update(t.Context(), object))
			locationtest.Settle(t, world)
			assert.Contains(t, world.Location(workflowtest.Backup).Finalizers, oadpv1alpha1.NabslFinalizer)
			locationtest.RemoveLocation(world)
			locationtest.Settle(t, world)
			assert.Nil(t, world.VeleroLocation(workflowtest.Backup))
			assert.Nil(t, world.Copy(workflowtest.Backup))
		})
	}
}

// message returns that condition's message.
func message(world *fake.World, kind oadpv1alpha1.NonAdminCondition) string {
	if c := meta.FindStatusCondition(world.Location(workflowtest.Backup).Status.Conditions, string(kind)); c != nil {
		return c.Message
	}
	return ""
}
