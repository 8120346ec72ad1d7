package watch

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/watch/caches"
)

func TestTheWatcherIsReadyOnceAllCachesAreFilled(t *testing.T) {
	s := newStation(t)
	require.ErrorIs(t, s.Watching(t.Context()), errNotWatching)
	s.election().Refused(errNoRight)
	require.ErrorIs(t, s.Watching(t.Context()), errNoRight, "what it waits for")
	s.informers.err = errAway
	require.ErrorIs(t, s.awaitCaches(t.Context()), errAway)
	require.Error(t, s.Watching(t.Context()))

	s.informers.err, s.informers.asked = nil, nil
	require.NoError(t, s.awaitCaches(t.Context()))
	require.NoError(t, s.Watching(t.Context()))
	assert.Len(t, s.informers.asked, 21, "every kind that is watched")
}

// The rights and kinds of FoundationDB may not be there.
func TestAWatcherOfVeleroTouchesNothingOfFoundationDB(t *testing.T) {
	s := newStationOf(t, false)
	require.NoError(t, s.awaitCaches(t.Context()))
	cached := s.informers.asked
	assert.Len(t, cached, 17)
	for _, kind := range cached {
		assert.NotContains(t, fmt.Sprintf("%T", kind), "FoundationDB")
		assert.NotContains(t, []string{"*v1.Pod", "*v1.Deployment"}, fmt.Sprintf("%T", kind))
	}
	assert.Nil(t, s.Census().FoundationDB.Backups, "no metric of theirs")
}

func TestTheCacheHoldsOfVelerosObjectsOnlyThoseOfTheOADPNamespace(t *testing.T) {
	options := CacheOptions(fake.OADPNamespace, &caches.Refusals{})
	var kinds []string
	for kind, by := range options.ByObject {
		if _, agents := kind.(*appsv1.Deployment); agents {
			assert.NotNil(t, by.Label, "of all Deployments those of FoundationDB's backup agents")
			continue
		}
		if _, pods := kind.(*corev1.Pod); pods {
			assert.NotNil(t, by.Label, "of all pods those that expire FoundationDB backups")
			continue
		}
		for namespace := range by.Namespaces {
			assert.Equal(t, fake.OADPNamespace, namespace)
		}
		assert.Len(t, by.Namespaces, 1)
		switch kind.(type) {
		case *velerov1.Backup:
			kinds = append(kinds, "Backup")
		case *velerov1.Restore:
			kinds = append(kinds, "Restore")
		case *velerov1.DeleteBackupRequest:
			kinds = append(kinds, "DeleteBackupRequest")
		case *velerov1.BackupStorageLocation:
			kinds = append(kinds, "BackupStorageLocation")
		case *velerov1.DownloadRequest:
			kinds = append(kinds, "DownloadRequest")
		}
	}
	assert.ElementsMatch(t, []string{"Backup", "Restore", "DeleteBackupRequest", "BackupStorageLocation", "DownloadRequest"}, kinds)
	nab := fake.NAB(name)
	nab.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	kept, err := options.DefaultTransform(nab)
	require.NoError(t, err)
	assert.Empty(t, kept.(*oadpv1alpha1.NonAdminBackup).ManagedFields)
}
