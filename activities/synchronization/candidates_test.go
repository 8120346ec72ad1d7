package synchronization_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/activities/synchronization"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/ledger"
)

// listed is what a list says of a Velero Backup called `<namespace>-<name>`.
func listed(namespace, name string, changes ...func(*velerov1.Backup)) metav1.PartialObjectMetadata {
	called := namespace + "-" + name
	made := backup(append([]func(*velerov1.Backup){
		annotated(oadpv1alpha1.NabOriginNamespaceAnnotation, namespace), annotated(oadpv1alpha1.NabOriginNameAnnotation, name),
		labelled(oadpv1alpha1.NabOriginNACUUIDLabel, called),
		func(made *velerov1.Backup) { made.Name = called },
	}, changes...)...)
	return metav1.PartialObjectMetadata{ObjectMeta: made.ObjectMeta}
}

func in(location string) func(*velerov1.Backup) {
	return labelled(velerov1.StorageLocationLabel, location)
}

func names(candidates []synchronization.Candidate) []string {
	found := []string{}
	for _, each := range candidates {
		found = append(found, each.Name)
	}
	return found
}

func TestEveryNamespaceHasItsTurn(t *testing.T) {
	lists := synchronization.Lists{
		Backups: []metav1.PartialObjectMetadata{
			listed("a", "1"), listed("a", "2"), listed("a", "3"), listed("b", "1"), listed("c", "there"),
		},
		NABs: map[types.NamespacedName]string{{Namespace: "c", Name: "there"}: ""},
	}
	candidates, _ := lists.Candidates(nil)
	assert.Equal(t, []string{"a-1", "b-1", "a-2", "a-3"}, names(candidates))
	candidates, _ = lists.Candidates(func(n int, swap func(i, j int)) { // backwards
		for i := range n / 2 {
			swap(i, n-1-i)
		}
	})
	assert.Equal(t, []string{"b-1", "a-3", "a-2", "a-1"}, names(candidates), "nobody is the last for ever")
}

func TestWhatTheListsSayNeedsNoLook(t *testing.T) {
	lists := synchronization.Lists{
		Locations: map[string]*synchronization.Location{
			"default": {Name: "default"},
			"banks":   {Name: "banks", Tenants: true, Owner: "bank", NaBSL: "own"},
			"nobodys": {Name: "nobodys", Tenants: true},
		},
		Entries: map[string]ledger.Entry{"shop-entered": {}, "shop-marked": {}},
	}
	marked := annotated(synchronization.StateAnnotation, "released/u1")
	for sentence, tt := range map[string]struct {
		made      metav1.PartialObjectMetadata
		look      bool
		untrusted int
	}{
		"in an administrator's location":       {listed("shop", "x", in("default")), true, 0},
		"in the tenant's own":                  {listed("bank", "x", in("banks")), true, 0},
		"in another tenant's":                  {listed("shop", "x", in("banks")), false, 1},
		"in one that is proven to be nobody's": {listed("shop", "x", in("nobodys")), false, 1},
		"in one that is not there":             {listed("shop", "x", in("gone")), false, 0},
		"without the label: it must be read":   {listed("shop", "x"), true, 0},
		"in one whose name is cut":             {listed("shop", "x", in(strings.Repeat("n", 63))), true, 0},
		"entered, not marked":                  {listed("shop", "entered", in("default")), true, 0},
		"entered and marked":                   {listed("shop", "marked", in("default"), marked), false, 0},
		"marked, the entry was removed":        {listed("shop", "x", in("default"), marked), true, 0},
		"not called as what Holdfast makes":    {listed("shop", "x", labelled(oadpv1alpha1.NabOriginNACUUIDLabel, "y")), false, 0},
		"being deleted": {
			listed("shop", "x", func(b *velerov1.Backup) { b.DeletionTimestamp = &metav1.Time{Time: noon} }), false, 0,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			lists := lists
			lists.Backups = []metav1.PartialObjectMetadata{tt.made}
			candidates, untrusted := lists.Candidates(nil)
			assert.Equal(t, tt.look, slices.Contains(names(candidates), tt.made.Name))
			assert.Equal(t, tt.untrusted, untrusted)
		})
	}
}

func TestWhatANonAdminBackupWasMadeFor(t *testing.T) {
	lists := synchronization.Lists{
		NABs: map[types.NamespacedName]string{{Namespace: "shop", Name: "x"}: "shop-x"},
		Locations: map[string]*synchronization.Location{
			"default": {}, "banks": {Tenants: true, Owner: "bank"},
		},
	}
	of := func(name string, changes ...func(*velerov1.Backup)) bool {
		made := listed("shop", name, changes...)
		return lists.MadeFor(&made)
	}
	assert.True(t, of("x", in("default")))
	assert.False(t, of("y", in("default")))
	assert.False(t, of("x", in("banks")), "forged")
	assert.False(t, of("x", in("default"), annotated(synchronization.StateAnnotation, "made/u1")), "said already")
}
