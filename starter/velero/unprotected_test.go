package velero

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/operator/operatortest"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func ended(phase velerov1.BackupPhase, ago time.Duration) velerov1.BackupStatus {
	begin := metav1.NewTime(noon.Add(-ago))
	return velerov1.BackupStatus{Phase: phase, StartTimestamp: &begin}
}

// veleros is a Velero Backup of a namespace in the administrator's location.
func veleros(namespace, name string, status velerov1.BackupStatus) *velerov1.Backup {
	return &velerov1.Backup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-adp", Name: namespace + "-" + name}, Status: status,
		Spec: velerov1.BackupSpec{
			IncludedNamespaces: []string{namespace}, StorageLocation: "default", ExcludedResources: check.ExcludedNamespaceScoped,
		},
	}
}

func TestNamespacesWithoutAGoodBackupAreListed(t *testing.T) {
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	partial := veleros("bank", "configmaps", ended(velerov1.BackupPhaseCompleted, time.Hour))
	partial.Spec.IncludedResources = []string{"configmaps"}
	objects := []client.Object{partial, &velerov1.BackupStorageLocation{ObjectMeta: in("openshift-adp", "default")}}
	for _, name := range []string{"shop", "bank", "empty", "failed", "covered", "openshift-adp", "kube-system"} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
			&corev1.ConfigMap{ObjectMeta: in(name, "kube-root-ca.crt")})
	}
	objects = append(objects,
		&appsv1.Deployment{ObjectMeta: in("shop", "web")}, &corev1.PersistentVolumeClaim{ObjectMeta: in("shop", "data")},
		&holdfastv1alpha1.BackupPlan{ObjectMeta: in("shop", "nightly")},
		&corev1.Secret{ObjectMeta: in("bank", "key")}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "empty", Name: "token", Annotations: map[string]string{"kubernetes.io/service-account.name": "default"},
		}},
		&appsv1.Deployment{ObjectMeta: in("failed", "web")}, &appsv1.Deployment{ObjectMeta: in("covered", "web")},
		&appsv1.Deployment{ObjectMeta: in("kube-system", "dns")}, &appsv1.Deployment{ObjectMeta: in("openshift-adp", "velero")},
		veleros("shop", "old", ended(velerov1.BackupPhaseCompleted, 72*time.Hour)),
		veleros("shop", "new", ended(velerov1.BackupPhaseCompleted, 30*time.Hour)),
		veleros("failed", "new", ended(velerov1.BackupPhasePartiallyFailed, time.Hour)),
		veleros("failed", "cancelled", ended("Cancelled", time.Hour)), veleros("failed", "unknown", ended("OfTomorrow", time.Hour)),
		veleros("c*", "admins", ended(velerov1.BackupPhaseCompleted, time.Hour)),
	)
	reader := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(objects...).Build()
	holdings, err := ReadHoldings(t.Context(), reader, "openshift-adp")
	require.NoError(t, err)
	assert.Len(t, holdings, 5)
	found := Unprotected(holdings, noon, 24*time.Hour)
	text := operatortest.Printed(t, "table", found, func(out io.Writer) error { return operator.PrintRows(out, HoldingColumns, found) })
	assert.Equal(t, []string{
		"NAMESPACE WORKLOADS CLAIMS DATA PLANS LAST-GOOD LAST-PARTLY LEFT-OUT",
		"bank 0 0 1 0 never 2026-11-24T11:00:00Z all but configmaps", "failed 1 0 0 0 never", "shop 1 1 0 1 2026-11-23T06:00:00Z",
	}, operatortest.Lines(text), "those without any first")
	assert.Len(t, Unprotected(holdings, noon, 48*time.Hour), 2)
}

func TestWhichNamespacesABackupIncludes(t *testing.T) {
	for title, test := range map[string]struct {
		spec velerov1.BackupSpec
		want bool
	}{
		"all":                          {velerov1.BackupSpec{}, true},
		"a star":                       {velerov1.BackupSpec{IncludedNamespaces: []string{"*"}}, true},
		"by name":                      {velerov1.BackupSpec{IncludedNamespaces: []string{"shop"}}, true},
		"others":                       {velerov1.BackupSpec{IncludedNamespaces: []string{"bank"}}, false},
		"all but this":                 {velerov1.BackupSpec{ExcludedNamespaces: []string{"shop"}}, false},
		"by a pattern (velero#1874)":   {velerov1.BackupSpec{IncludedNamespaces: []string{"bank", "s*"}}, true},
		"by a class of characters":     {velerov1.BackupSpec{IncludedNamespaces: []string{"[r-t]h?p"}}, true},
		"by others' pattern":           {velerov1.BackupSpec{IncludedNamespaces: []string{"t*"}}, false},
		"all but those of a pattern":   {velerov1.BackupSpec{IncludedNamespaces: []string{"*"}, ExcludedNamespaces: []string{"s*"}}, false},
		"what is no class to Velero":   {velerov1.BackupSpec{IncludedNamespaces: []string{"[^a]*"}}, false},
		"all but what may be this":     {velerov1.BackupSpec{ExcludedNamespaces: []string{"[^a]*"}}, false},
		"or, escaped, a name":          {velerov1.BackupSpec{ExcludedNamespaces: []string{`b\ank`}}, false},
		"or one of several names":      {velerov1.BackupSpec{ExcludedNamespaces: []string{"{bank,shop}"}}, false},
		"all but half a class":         {velerov1.BackupSpec{ExcludedNamespaces: []string{"[b"}}, false},
		"all but another":              {velerov1.BackupSpec{ExcludedNamespaces: []string{"b?n[k-l]*"}}, true},
		"a pattern that is in no name": {velerov1.BackupSpec{IncludedNamespaces: []string{"*hop*s"}}, false},
	} {
		assert.Equal(t, test.want, includes(&test.spec, "shop"), title)
	}
}

func TestWhatABackupLeavesOut(t *testing.T) {
	for title, test := range map[string]struct {
		spec velerov1.BackupSpec
		want []string
	}{
		"nothing":                      {velerov1.BackupSpec{}, nil},
		"what no tenant's backup has":  {velerov1.BackupSpec{ExcludedResources: slices.Concat(check.ExcludedClusterScoped, []string{"events"})}, nil},
		"cluster-scoped kinds":         {velerov1.BackupSpec{ExcludedClusterScopedResources: []string{"*"}}, nil},
		"kinds":                        {velerov1.BackupSpec{ExcludedResources: []string{"secrets", "persistentvolumeclaims"}}, []string{"secrets", "persistentvolumeclaims"}},
		"kinds, by scope":              {velerov1.BackupSpec{ExcludedNamespaceScopedResources: []string{"secrets"}}, []string{"secrets"}},
		"all but a kind":               {velerov1.BackupSpec{IncludedResources: []string{"configmaps", "secrets"}}, []string{"all but configmaps, secrets"}},
		"all kinds, by a star":         {velerov1.BackupSpec{IncludedNamespaceScopedResources: []string{"*"}}, nil},
		"by labels":                    {velerov1.BackupSpec{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}, []string{"what its labels do not select"}},
		"volumes":                      {velerov1.BackupSpec{SnapshotVolumes: new(bool)}, []string{"volumes, but those that Pods choose by annotation"}},
		"volumes as files":             {velerov1.BackupSpec{SnapshotVolumes: new(bool), DefaultVolumesToFsBackup: new(true)}, nil},
		"by rules":                     {velerov1.BackupSpec{ResourcePolicy: &corev1.TypedLocalObjectReference{Name: "small"}}, []string{"what resource policy small leaves out"}},
		"by labels that select all":    {velerov1.BackupSpec{LabelSelector: &metav1.LabelSelector{}}, nil},
		"by one of several that do so": {velerov1.BackupSpec{OrLabelSelectors: []*metav1.LabelSelector{{}, {MatchLabels: map[string]string{"a": "b"}}}}, nil},
	} {
		assert.Equal(t, test.want, leftOut(&test.spec, 1), title)
	}
}

func TestWhichBackupsCount(t *testing.T) {
	tenants := func(namespace string) *velerov1.BackupStorageLocation {
		location := &oadpv1alpha1.NonAdminBackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "store", UID: "u"}}
		name := owner.NACUUID("west", namespace, "store", "u")
		return &velerov1.BackupStorageLocation{ObjectMeta: owner.Location.Meta(location, name, "openshift-adp", name)}
	}
	for title, test := range map[string]struct {
		location *velerov1.BackupStorageLocation
		created  time.Time
		change   func(*velerov1.Backup)
		want     bool
	}{
		"in an administrator's location":       {location: &velerov1.BackupStorageLocation{}, want: true},
		"in the tenant's own":                  {location: tenants("shop"), want: true},
		"in another tenant's, who wrote it":    {location: tenants("bank"), want: false},
		"in a location that is gone":           {want: false},
		"from before the namespace was made":   {location: &velerov1.BackupStorageLocation{}, created: noon, want: false},
		"that is being deleted":                {location: &velerov1.BackupStorageLocation{}, change: func(b *velerov1.Backup) { b.DeletionTimestamp = new(metav1.NewTime(noon)) }},
		"of which not all could be backed up":  {location: &velerov1.BackupStorageLocation{}, change: func(b *velerov1.Backup) { b.Status.Phase = velerov1.BackupPhasePartiallyFailed }},
		"of all, by a pattern, in the admin's": {location: &velerov1.BackupStorageLocation{}, change: func(b *velerov1.Backup) { b.Spec.IncludedNamespaces = []string{"s?op"} }, want: true},
		"of all, by a pattern, in a tenant's":  {location: tenants("bank"), change: func(b *velerov1.Backup) { b.Spec.IncludedNamespaces = nil }},
	} {
		made := veleros("shop", "nightly", ended(velerov1.BackupPhaseCompleted, time.Hour))
		if test.change != nil {
			test.change(made)
		}
		h := &Holding{Namespace: "shop", created: test.created}
		h.note(made, test.location)
		assert.Equal(t, test.want, h.LastGood != nil, title)
		assert.Nil(t, h.LastPartly, title)
	}
}
