package owner_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
)

const oadp = "openshift-adp"

// keys are the labels and annotations of one kind, as the OADP non-admin controller calls them.
type keys struct{ namespace, name, nacuuid string }

func keysOf(kind string) keys {
	stem := "openshift.io/oadp-" + kind + "-origin-"
	return keys{namespace: stem + "namespace", name: stem + "name", nacuuid: stem + "nacuuid"}
}

var kinds = map[string]struct {
	origin owner.Origin
	keys   keys
}{
	"backup":   {owner.Backup, keysOf("nab")},
	"restore":  {owner.Restore, keysOf("nar")},
	"location": {owner.Location, keysOf("nabsl")},
	"download": {owner.Download, keysOf("nadr")},
}

// strengths are what is found out about an object and shop/nightly, which has UID "uid".
type strengths struct{ hint, names, called, madeFor, proven bool }

func judge(origin owner.Origin, made *metav1.PartialObjectMetadata) strengths {
	of := &metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: "uid"}
	shop := types.NamespacedName{Namespace: "shop", Name: "nightly"}
	var s strengths
	key, found := origin.Hint(made)
	s.hint = found && key == shop
	s.names = origin.Names(made, "shop", "nightly")
	s.called = origin.Called(made, "shop", "nightly")
	s.madeFor = origin.MadeFor(made, of)
	key, found = origin.Proven(made)
	s.proven = found && key == shop
	return s
}

// Each strength, and what it takes for somebody to have it.
func TestEachStrengthIsRefusedToItsForgeries(t *testing.T) {
	all := strengths{hint: true, names: true, called: true, madeFor: true, proven: true}
	none := strengths{}
	type made = metav1.PartialObjectMetadata
	for title, test := range map[string]struct {
		change func(*made, keys)
		want   strengths
	}{
		"as it is made":              {func(*made, keys) {}, all},
		"nothing on it":              {func(m *made, _ keys) { m.Labels, m.Annotations = nil, nil }, none},
		"labels alone":               {func(m *made, _ keys) { m.Annotations = nil }, none},
		"annotations alone":          {func(m *made, _ keys) { m.Labels = nil }, strengths{hint: true}},
		"without OADP's label":       {func(m *made, _ keys) { delete(m.Labels, "openshift.io/oadp") }, strengths{hint: true}},
		"OADP's label says no":       {func(m *made, _ keys) { m.Labels["openshift.io/oadp"] = "False" }, strengths{hint: true}},
		"another namespace's":        {func(m *made, k keys) { m.Annotations[k.namespace] = "bank" }, none},
		"another object's":           {func(m *made, k keys) { m.Annotations[k.name] = "weekly" }, none},
		"without a namespace":        {func(m *made, k keys) { delete(m.Annotations, k.namespace) }, none},
		"without a name":             {func(m *made, k keys) { delete(m.Annotations, k.name) }, none},
		"a name that is too long":    {func(m *made, k keys) { m.Annotations[k.name] = strings.Repeat("n", 254) }, none},
		"a namespace with a path":    {func(m *made, k keys) { m.Annotations[k.namespace] = "../shop" }, none},
		"a namespace of other cases": {func(m *made, k keys) { m.Annotations[k.namespace] = "Shop" }, none},
		"a copy under another name": {
			func(m *made, _ keys) { m.Name += "-2" }, strengths{hint: true, names: true},
		},
		"another NACUUID": {
			func(m *made, k keys) { m.Labels[k.nacuuid] = "shop-other-1" }, strengths{hint: true, names: true},
		},
		"no NACUUID": {func(m *made, k keys) { delete(m.Labels, k.nacuuid) }, strengths{hint: true, names: true}},
		"managed by somebody else": {
			func(m *made, _ keys) { m.Labels["app.kubernetes.io/managed-by"] = "helm" },
			strengths{hint: true, names: true, called: true, madeFor: true},
		},
		"named like no label": {
			func(m *made, k keys) { m.Name = strings.Repeat("n", 64); m.Labels[k.nacuuid] = m.Name },
			strengths{hint: true, names: true, called: true, madeFor: true},
		},
	} {
		for kind, of := range kinds {
			t.Run(title+", "+kind, func(t *testing.T) {
				object := &made{ObjectMeta: of.origin.Meta(
					&metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: "uid"}, "shop-nightly-1", oadp, "shop-nightly-1")}
				test.change(object, of.keys)
				assert.Equal(t, test.want, judge(of.origin, object))
				for other, against := range kinds {
					if other != kind {
						assert.Equal(t, none, judge(against.origin, object), "as a %s's", other)
					}
				}
			})
		}
	}
}

// A tenant's object that was recreated has another UID. What the OADP non-admin controller has made carries none.
func TestAnObjectOfTheSameNameIsAnother(t *testing.T) {
	of := &metav1.ObjectMeta{Namespace: "shop", Name: "own", UID: "uid"}
	for title, test := range map[string]struct {
		uid              string
		madeFor, another bool
	}{
		"the object's own": {"uid", true, false},
		"another's":        {"uid-2", false, true},
		"none":             {"", true, false},
	} {
		t.Run(title, func(t *testing.T) {
			made := &metav1.PartialObjectMetadata{ObjectMeta: owner.Location.Meta(of, "shop-own-1", oadp, "shop-own-1")}
			made.Annotations["holdfast.dev/nabsl-origin-uid"] = test.uid
			assert.Equal(t, types.UID(test.uid), owner.Location.UID(made))
			assert.Equal(t, test.madeFor, owner.Location.MadeFor(made, of))
			assert.Equal(t, test.another, owner.Location.ForAnother(made, of))
			assert.False(t, owner.Backup.ForAnother(made, of), "backups carry no UID")
		})
	}
}

// Who has read nothing asks with a nil of any type.
func TestNothingIsNobodys(t *testing.T) {
	var none *velerov1.Backup
	assert.False(t, owner.Backup.Names(none, "", ""))
	assert.False(t, owner.Backup.Names(nil, "", ""))
	marked := &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"openshift.io/oadp": "True"}}}
	assert.False(t, owner.Backup.Names(marked, "", ""), "nobody's is not nobody's in particular")
}

// What is looked for by labels is what was made with them.
func TestWhatIsMadeIsSelected(t *testing.T) {
	for kind, of := range kinds {
		made := of.origin.Meta(&metav1.ObjectMeta{Namespace: "shop", Name: "nightly"}, "nacuuid", oadp, "request-1")
		assert.Subset(t, made.Labels, of.origin.Labels("nacuuid"), kind)
		assert.Equal(t, "nacuuid", made.Labels[of.origin.Label()], kind)
		assert.Equal(t, of.keys.nacuuid, of.origin.Label(), kind)
		assert.Equal(t, oadp+"/request-1", made.Namespace+"/"+made.Name, kind)
		for key := range made.Labels {
			assert.Contains(t, owner.Keys(), key)
		}
		for key := range made.Annotations {
			assert.Contains(t, owner.Keys(), key)
		}
	}
}

// Anyone can write a name into a status; a name that no object can have counts as none.
func TestWhatAStatusClaims(t *testing.T) {
	claiming := func(name string) []metav1.Object {
		return []metav1.Object{
			&oadpv1alpha1.NonAdminBackup{Status: oadpv1alpha1.NonAdminBackupStatus{
				VeleroBackup: &oadpv1alpha1.VeleroBackup{NACUUID: name},
			}},
			&oadpv1alpha1.NonAdminRestore{Status: oadpv1alpha1.NonAdminRestoreStatus{
				VeleroRestore: &oadpv1alpha1.VeleroRestore{NACUUID: name},
			}},
			&oadpv1alpha1.NonAdminBackupStorageLocation{Status: oadpv1alpha1.NonAdminBackupStorageLocationStatus{
				VeleroBackupStorageLocation: &oadpv1alpha1.VeleroBackupStorageLocation{NACUUID: name},
			}},
		}
	}
	for _, object := range claiming("shop-nightly-1") {
		assert.Equal(t, "shop-nightly-1", owner.Claimed(object), "%T", object)
		assert.True(t, owner.Claims(object, "shop-nightly-1"), "%T", object)
		assert.False(t, owner.Claims(object, "shop-nightly-2"), "%T", object)
	}
	for _, forged := range []string{"../secrets", "a%2Fb", ".", "UPPER", strings.Repeat("n", 254), ""} {
		for _, object := range claiming(forged) {
			assert.Empty(t, owner.Claimed(object), "%T %q", object, forged)
			assert.False(t, owner.Claims(object, forged), "%T %q", object, forged)
			assert.Equal(t, forged, owner.Written(object))
		}
	}
	var none *oadpv1alpha1.NonAdminBackupStorageLocation
	for _, object := range []metav1.Object{none, &oadpv1alpha1.NonAdminBackup{}, &oadpv1alpha1.NonAdminRestore{}, &velerov1.Backup{}} {
		assert.Empty(t, owner.Claimed(object), "%T", object)
	}
}

func TestWhatALabelSaysItWasSyncedFrom(t *testing.T) {
	nab := &oadpv1alpha1.NonAdminBackup{}
	assert.Empty(t, owner.SyncedFrom(nab))
	nab.Labels = owner.SyncedLabels("shop-nightly-1")
	assert.Equal(t, map[string]string{"openshift.io/oadp-nab-synced-from-nacuuid": "shop-nightly-1"}, nab.Labels)
	assert.Equal(t, "shop-nightly-1", owner.SyncedFrom(nab))
	nab.Labels = owner.SyncedLabels("")
	assert.Empty(t, owner.SyncedFrom(nab), "no name")
}

func TestANameIsDerivedFromOneObjectOfOneCluster(t *testing.T) {
	of := &metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: "uid"}
	name := owner.NACUUID("west", "shop", "nightly", "uid")
	assert.True(t, owner.Derived(name, "west", of))
	assert.False(t, owner.Derived(name, "east", of))
	for title, change := range map[string]func(*metav1.ObjectMeta){
		"recreated":         func(m *metav1.ObjectMeta) { m.UID = "uid-2" },
		"another name":      func(m *metav1.ObjectMeta) { m.Name = "weekly" },
		"another namespace": func(m *metav1.ObjectMeta) { m.Namespace = "bank" },
	} {
		other := of.DeepCopy()
		change(other)
		assert.False(t, owner.Derived(name, "west", other), title)
	}
}
