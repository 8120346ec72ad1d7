package synchronization_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/synchronization"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/ledger"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	many    = 1000
	forgers = "aaa" // sorts before the tenant that it would delay
)

// forgersLocation is a tenant's own, into which Velero has looked or not, and its namespace.
func forgersLocation(looked bool) []client.Object {
	own := fake.NaBSL("own")
	own.Namespace, own.UID = forgers, "uid-forger"
	name := owner.NACUUID(fake.Cluster, forgers, "own", "uid-forger")
	made := activitytest.Listed()
	made.ObjectMeta = owner.Location.Meta(own, name, fake.OADPNamespace, name)
	if !looked {
		made.Status.LastSyncedTime = nil
	}
	return []client.Object{own, made, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: forgers}}}
}

// forged is what Velero makes of a file in that location's bucket.
func forged(number int, namespace string) *velerov1.Backup {
	name := fmt.Sprintf("%s-x%04d", forgers, number)
	origin := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	made := activitytest.SyncedBackup(name)
	made.ObjectMeta = owner.Backup.Meta(origin, name, fake.OADPNamespace, name)
	made.UID, made.CreationTimestamp = types.UID(name), metav1.NewTime(time.Now().Add(-time.Minute))
	made.Spec.StorageLocation = owner.NACUUID(fake.Cluster, forgers, "own", "uid-forger")
	made.Labels[velerov1.StorageLocationLabel] = made.Spec.StorageLocation
	return made
}

// What one tenant fills its bucket with does not delay another, costs little, and comes to an end.
func TestAThousandForgedBackupsDelayNobody(t *testing.T) {
	const lists, looks = 20, 50 // what the lists and one backup to be offered cost at most, and the looks that one namespace has
	for sentence, tt := range map[string]struct {
		forge     func(number int) *velerov1.Backup
		entries   func(*corev1.ConfigMap, *velerov1.Backup)
		untrusted int
		reads     int64
	}{
		"in others' names": {
			forge: func(n int) *velerov1.Backup { return forged(n, fake.Namespace) }, untrusted: many, reads: lists,
		},
		"in its own, without anything to offer": {
			forge: func(n int) *velerov1.Backup {
				made := forged(n, forgers)
				made.Status.Phase = velerov1.BackupPhaseFailed
				return made
			}, reads: lists + looks,
		},
		"let go": {
			forge: func(n int) *velerov1.Backup {
				made := forged(n, forgers)
				synchronization.SetState(made, synchronization.StateReleased)
				return made
			},
			entries: func(ledger *corev1.ConfigMap, made *velerov1.Backup) { ledger.Data[made.Name] = "{}" }, reads: lists,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			ledger := &corev1.ConfigMap{Data: map[string]string{}, ObjectMeta: metav1.ObjectMeta{
				Namespace: fake.OADPNamespace, Name: ledger.ConfigMapName, Labels: map[string]string{ledger.Label: "true"},
			}}
			objects := append(forgersLocation(true), ledger, activitytest.Listed(), activitytest.SyncedBackup(activitytest.Name),
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace}})
			for number := range many {
				made := tt.forge(number)
				if tt.entries != nil {
					tt.entries(ledger, made)
				}
				objects = append(objects, made)
			}
			w := fake.New(t, objects...)
			var reads atomic.Int64
			w.FailReads(func(runtime.Object) error {
				reads.Add(1)
				return nil
			})
			first := activitytest.SynchronizeNow(t, w)
			assert.Equal(t, 1, first.Made)
			assert.Equal(t, tt.untrusted, first.Untrusted)
			require.NotNil(t, w.Read(activitytest.Name), "the other tenant has its backup at once")
			assert.LessOrEqual(t, reads.Load(), tt.reads)
			assert.False(t, activitytest.SynchronizeNow(t, w).More, "what comes to nothing is not gone through again and again")
		})
	}
}

// More than one activity may do is done by several, however it is distributed.
func TestThereIsMoreOnlyAfterSomethingWasDone(t *testing.T) {
	objects := append(forgersLocation(true), activitytest.Listed(), activitytest.SyncedBackup(activitytest.Name),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace}})
	for number := range 600 {
		objects = append(objects, forged(number, forgers))
	}
	w := fake.New(t, objects...)
	first := activitytest.SynchronizeNow(t, w)
	assert.True(t, first.More)
	assert.Equal(t, 500, first.Made)
	assert.NotNil(t, w.Read(activitytest.Name), "everybody had a turn")
	assert.Equal(t, contract.SynchronizationResult{Made: 101}, activitytest.SynchronizeNow(t, w))

	var list oadpv1alpha1.NonAdminBackupList
	require.NoError(t, w.Client.List(t.Context(), &list, client.InNamespace(forgers)))
	assert.Len(t, list.Items, 600)
}

// A store that never answers holds back what it may bring, and nothing of anybody else's.
func TestATenantsLocationHoldsBackItsOwnBackupsOnly(t *testing.T) {
	copied := fake.LocationName("lost")
	secret := &corev1.Secret{ObjectMeta: owner.Location.Meta(fake.NaBSL("lost"), copied, fake.OADPNamespace, copied)}
	lost := fake.NaBSL("lost")
	lost.Namespace = forgers
	forgersSecret := &corev1.Secret{ObjectMeta: owner.Location.Meta(lost, forgers+"-lost", fake.OADPNamespace, forgers+"-lost")}
	refused, own := activitytest.SyncedBackup("refused"), forged(1, forgers)
	for _, each := range []*velerov1.Backup{refused, own} {
		each.Status = velerov1.BackupStatus{Phase: velerov1.BackupPhaseFailedValidation}
	}
	w := fake.New(t, append(forgersLocation(false), activitytest.Listed(), secret, forgersSecret, refused, own)...)
	assert.Equal(t, contract.CollectionResult{
		Deleted:  []contract.CollectedKind{{Kind: "Secret", Count: 2}, {Kind: "Backup", Count: 1}},
		HeldBack: 1,
	}, activitytest.CollectNow(t, w))
	assert.NotNil(t, w.Velero(own.Name))
	assert.Nil(t, w.Velero(refused.Name))
}

func TestAProbeCollectsNothing(t *testing.T) {
	copied := fake.LocationName("own")
	secret := &corev1.Secret{ObjectMeta: owner.Location.Meta(fake.NaBSL("own"), copied, fake.OADPNamespace, copied)}
	w := fake.New(t, activitytest.Listed(), secret)
	result, err := activitytest.Periodic[contract.CollectionResult](t, w, contract.CollectOrphans.Name, contract.CollectionInput{Probe: true})
	require.NoError(t, err)
	assert.Zero(t, result)
	assert.NotNil(t, w.Copy("own"))
}
