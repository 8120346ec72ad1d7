package synchronization_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/synchronization"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
)

func tenants() *velerov1.BackupStorageLocation {
	made := &velerov1.BackupStorageLocation{
		ObjectMeta: owner.Location.Meta(fake.NaBSL("own"), fake.LocationName("own"), fake.OADPNamespace, fake.LocationName("own")),
		Status:     velerov1.BackupStorageLocationStatus{Phase: velerov1.BackupStorageLocationPhaseAvailable},
	}
	made.Annotations[oadpv1alpha1.NabslOriginUIDAnnotation] = "uid-own"
	made.Spec.Credential = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: made.Name}}
	return made
}

func read(t *testing.T, made *velerov1.BackupStorageLocation, owner bool) *synchronization.Location {
	t.Helper()
	world := fake.New(t, made)
	if owner {
		world = fake.New(t, made, fake.NaBSL("own"))
	}
	locations, err := synchronization.Locations(t.Context(), world.Client, fake.OADPNamespace, policy.Policy{})
	require.NoError(t, err)
	return locations[made.Name]
}

func TestALocationIsItsProvenOwners(t *testing.T) {
	assert.True(t, read(t, tenants(), true).Holds(fake.Namespace))
	assert.False(t, read(t, tenants(), true).Holds("bank"))
	for name, change := range map[string]func(*velerov1.BackupStorageLocation){
		"another incarnation":    func(b *velerov1.BackupStorageLocation) { b.Annotations[oadpv1alpha1.NabslOriginUIDAnnotation] = "old" },
		"another name":           func(b *velerov1.BackupStorageLocation) { b.Labels[oadpv1alpha1.NabslOriginNACUUIDLabel] = "x" },
		"no label that it is so": func(b *velerov1.BackupStorageLocation) { delete(b.Labels, oadpv1alpha1.OadpLabel) },
		"stripped of all marks":  func(b *velerov1.BackupStorageLocation) { b.Labels, b.Annotations = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			made := tenants()
			change(made)
			assert.False(t, read(t, made, true).Holds(fake.Namespace), "nobody's: certainly not an administrator's")
		})
	}
	assert.False(t, read(t, tenants(), false).Holds(fake.Namespace), "its owner is gone")
	admins := &velerov1.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: "default"}}
	assert.True(t, read(t, admins, false).Holds("bank"))
}

func TestWhetherVeleroHasLooked(t *testing.T) {
	at := func(phase velerov1.BackupStorageLocationPhase, created, synced time.Time) *velerov1.BackupStorageLocation {
		made := &velerov1.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{
			Namespace: fake.OADPNamespace, Name: "default", CreationTimestamp: metav1.NewTime(created),
		}}
		made.Status.Phase = phase
		if !synced.IsZero() {
			made.Status.LastSyncedTime = &metav1.Time{Time: synced}
		}
		return made
	}
	const available, unavailable = velerov1.BackupStorageLocationPhaseAvailable, velerov1.BackupStorageLocationPhaseUnavailable
	off := at(available, noon, time.Time{})
	off.Spec.BackupSyncPeriod = &metav1.Duration{}
	for name, tt := range map[string]struct {
		made *velerov1.BackupStorageLocation
		want string
	}{
		"looked into":                          {at(available, noon, noon.Add(time.Minute)), ""},
		"not yet":                              {at(available, noon, time.Time{}), "default"},
		"not since the rebuild":                {at(available, noon, noon.Add(-time.Minute)), "default"},
		"not validated yet":                    {at("", noon, time.Time{}), "default"},
		"unavailable: nothing is known at all": {at(unavailable, noon, time.Time{}), "any storage location"},
		"never looked into":                    {off, ""},
	} {
		t.Run(name, func(t *testing.T) {
			locations, err := synchronization.Locations(t.Context(), fake.New(t, tt.made).Client, fake.OADPNamespace, policy.Policy{})
			require.NoError(t, err)
			assert.Equal(t, tt.want, synchronization.Waiting(locations))
		})
	}
	assert.Equal(t, "any storage location", synchronization.Waiting(nil))
}

// The store of a tenant may be one that never answers, on purpose.
func TestOnlyAdministratorsLocationsAreWaitedFor(t *testing.T) {
	looked := &synchronization.Location{Available: true, Listed: true}
	fresh := &synchronization.Location{Available: true}
	tenantsFresh := &synchronization.Location{Tenants: true, Owner: "shop", Available: true}
	tenantsLooked := &synchronization.Location{Tenants: true, Owner: "bank", Available: true, Listed: true}
	away := &synchronization.Location{Listed: true}
	for sentence, tt := range map[string]struct {
		locations map[string]*synchronization.Location
		waiting   string
		held      map[string]bool
	}{
		"a tenant's not looked into": {
			map[string]*synchronization.Location{"default": looked, "t": tenantsFresh}, "", map[string]bool{"shop": true},
		},
		"an administrator's not looked into": {
			map[string]*synchronization.Location{"default": looked, "second": fresh, "t": tenantsLooked}, "second", map[string]bool{},
		},
		"the administrators' are away, a tenant's is there": {
			map[string]*synchronization.Location{"default": away, "t": tenantsLooked}, "any storage location", map[string]bool{},
		},
		"tenants' alone": {
			map[string]*synchronization.Location{"t": tenantsLooked, "u": tenantsFresh}, "", map[string]bool{"shop": true},
		},
		"one whose owner is gone": {
			map[string]*synchronization.Location{"default": looked, "t": {Tenants: true, Available: true}}, "", map[string]bool{},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tt.waiting, synchronization.Waiting(tt.locations))
			assert.Equal(t, tt.held, synchronization.HeldBack(tt.locations))
		})
	}
}
