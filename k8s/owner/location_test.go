package owner_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s/owner"
)

func TestATenantsLocationHoldsWhatIsItsNamespaces(t *testing.T) {
	name := owner.NACUUID("c", "shop", "own", "uid")
	tenants := func() *velerov1.BackupStorageLocation {
		of := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}}
		made := &velerov1.BackupStorageLocation{ObjectMeta: owner.Location.Meta(of, name, "openshift-adp", name)}
		made.Spec.Credential = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
		return made
	}
	assert.True(t, owner.MayHold(tenants(), "shop"))
	assert.False(t, owner.MayHold(tenants(), "bank"))
	stripped := tenants()
	stripped.Labels, stripped.Annotations = nil, nil
	assert.False(t, owner.MayHold(stripped, "shop"), "nobody's: certainly not an administrator's")
	unmarked := tenants()
	unmarked.Labels = nil
	assert.True(t, owner.MayHold(unmarked, "shop"), "it still says whose it is")
	assert.False(t, owner.MayHold(unmarked, "bank"))
	admins := &velerov1.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	assert.True(t, owner.MayHold(admins, "bank"))
}

func TestWhoseALocationMayBeByItsName(t *testing.T) {
	long := strings.Repeat("n", 40)
	for _, namespace := range []string{"a", "shop", long, strings.Repeat("m", 25)} {
		name := owner.NACUUID("c", namespace, "own", "uid")
		assert.True(t, owner.MayBeTenants(name), name)
		assert.True(t, owner.MayBeOf(name, namespace), name)
		assert.False(t, owner.MayBeOf(name, "bank"), name)
	}
	for _, name := range []string{"", "default", "shop-own", long} {
		assert.False(t, owner.MayBeTenants(name), name)
	}
}
