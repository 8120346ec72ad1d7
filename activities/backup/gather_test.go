package backup_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/activities/backup"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	backupworkflow "holdfast.dev/holdfast/workflows/backup"
	"holdfast.dev/holdfast/workflows/contract"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// refuseImpossibleNames makes the world answer as a real client does when asked for a name that cannot be in a URL.
func refuseImpossibleNames(w *fake.World) {
	w.Backups.Gatherer.Reader = interceptor.NewClient(w.Client, interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption,
		) error {
			if len(key.Name) > 253 || strings.ContainsAny(key.Name, "/%") || key.Name == "." {
				return errors.New("invalid resource name")
			}
			return c.Get(ctx, key, o, options...)
		},
	})
}

func typeOf(object runtime.Object) string {
	kind := fmt.Sprintf("%T", object)
	return kind[strings.LastIndex(kind, ".")+1:]
}

func gather(t *testing.T, w *fake.World) *backup.Objects {
	t.Helper()
	objects, err := w.Backups.Gatherer.Gather(t.Context(), fake.Ref(name))
	require.NoError(t, err)
	return objects
}

func deletedNAB() *oadpv1alpha1.NonAdminBackup {
	nab := fake.NAB(name)
	nab.Finalizers = []string{oadpv1alpha1.NabFinalizer}
	nab.DeletionTimestamp = &metav1.Time{Time: now}
	return nab
}

func TestWhatIsNotThereIsNoError(t *testing.T) {
	other := fake.NAB(name)
	other.UID = "uid-2"
	for title, objects := range map[string][]client.Object{
		"no object":                      nil,
		"another object of the old name": {other},
		"the name in another namespace": {&oadpv1alpha1.NonAdminBackup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "crew", Name: name, UID: "uid-" + name},
		}},
	} {
		t.Run(title, func(t *testing.T) {
			got := gather(t, fake.New(t, objects...))
			assert.Nil(t, got.NAB)
			assert.Equal(t, contract.BackupView{}, got.View(now))
			assert.True(t, backupworkflow.Settled(got.View(now)))
		})
	}
}

// An error is never taken for absence: a Velero Backup that could not be read would be reported as gone.
func TestWhatCannotBeReadIsAnError(t *testing.T) {
	away := errors.New("connection refused")
	deleting := deletedNAB()
	deleting.Spec.DeleteBackup = true
	backingOff := fake.NAB(name)
	backingOff.Status.Phase = oadpv1alpha1.NonAdminPhaseBackingOff
	located := backingOff.DeepCopy()
	located.Spec.BackupSpec.StorageLocation = "store"
	begun := fake.NAB(name)
	begin(begun)
	forged := fake.NAB(name)
	statusNames(victims)(forged)
	tests := map[string]struct {
		nab     *oadpv1alpha1.NonAdminBackup
		unread  runtime.Object
		policy  error
		wantErr string
	}{
		"the object":                     {nab: fake.NAB(name), unread: &oadpv1alpha1.NonAdminBackup{}, wantErr: "get NonAdminBackup team/nightly"},
		"its Velero Backup":              {nab: begun, unread: &velerov1.Backup{}, wantErr: "get Velero Backup openshift-adp/" + ours},
		"the Velero Backup it names":     {nab: forged, unread: &velerov1.Backup{}, wantErr: "get Velero Backup openshift-adp/" + victims},
		"its namespace":                  {nab: deletedNAB(), unread: &metav1.PartialObjectMetadata{}, wantErr: "get Namespace team"},
		"the requests to delete it":      {nab: deleting, unread: &velerov1.DeleteBackupRequestList{}, wantErr: "list DeleteBackupRequests"},
		"the policy":                     {nab: backingOff, policy: away, wantErr: "read the admin's policy"},
		"the storage location it names":  {nab: located, unread: &oadpv1alpha1.NonAdminBackupStorageLocation{}, wantErr: "validate NonAdminBackup team/nightly"},
		"nothing, and all was asked for": {nab: located},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			world := fake.New(t, test.nab)
			world.PolicyErr = test.policy
			world.FailReads(func(object runtime.Object) error {
				if test.unread != nil && typeOf(object) == typeOf(test.unread) {
					return away
				}
				return nil
			})
			_, err := world.Backups.Gatherer.Gather(t.Context(), fake.Ref(name))
			if test.wantErr == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.wantErr)
			require.ErrorIs(t, err, away)
		})
	}
}

// Nothing is read that does not matter: the worker pays for every call.
func TestOnlyWhatMattersIsRead(t *testing.T) {
	tests := map[string]struct {
		nab  func(*oadpv1alpha1.NonAdminBackup)
		want []string
	}{
		"a new object":             {func(*oadpv1alpha1.NonAdminBackup) {}, []string{"NonAdminBackup"}},
		"an object that was begun": {begin, []string{"NonAdminBackup", "Backup"}},
		"an object that was seen": {
			func(nab *oadpv1alpha1.NonAdminBackup) { lifecycle.ApplySeen(nab) }, []string{"NonAdminBackup", "Backup"},
		},
		"an object that is said to be synced": {labelNames(byNAC), []string{"NonAdminBackup", "Backup"}},
		"an object whose name agree":          {statusNames(ours), []string{"NonAdminBackup", "Backup"}},
		"an object that names another Backup": {
			statusNames(byNAC), []string{"NonAdminBackup", "Backup", "Backup"},
		},
		"an object to be deleted with its data": {
			func(nab *oadpv1alpha1.NonAdminBackup) { nab.Spec.DeleteBackup = true },
			[]string{"NonAdminBackup", "Backup", "DeleteBackupRequestList"},
		},
		"an object that was deleted": {
			func(nab *oadpv1alpha1.NonAdminBackup) { nab.ObjectMeta = deletedNAB().ObjectMeta },
			[]string{"NonAdminBackup", "Backup", "PartialObjectMetadata"},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			nab := fake.NAB(name)
			test.nab(nab)
			world := fake.New(t, nab)
			var read []string
			world.FailReads(func(object runtime.Object) error {
				read = append(read, typeOf(object))
				return nil
			})
			gather(t, world)
			assert.Equal(t, test.want, read)
		})
	}
}

func TestANamespaceThatIsGoneOrGoingIsTerminating(t *testing.T) {
	staying := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fake.Namespace}}
	going := staying.DeepCopy()
	going.Finalizers, going.DeletionTimestamp = []string{"kubernetes"}, &metav1.Time{Time: now}
	for title, test := range map[string]struct {
		namespace []client.Object
		want      bool
	}{
		"there": {[]client.Object{staying}, false},
		"going": {[]client.Object{going}, true},
		"gone":  {[]client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "another"}}}, true},
	} {
		t.Run(title, func(t *testing.T) {
			got := gather(t, fake.New(t, append(test.namespace, deletedNAB())...))
			assert.Equal(t, test.want, got.NamespaceTerminating)
		})
	}
}

func TestOnlyTheRequestsForTheBackupAreGathered(t *testing.T) {
	nab := fake.NAB(name)
	nab.Spec.ForceDeleteBackup = true
	request := func(namespace, name, of string) *velerov1.DeleteBackupRequest {
		return &velerov1.DeleteBackupRequest{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{velerov1.BackupNameLabel: of},
		}}
	}
	world := fake.New(t, nab, request(fake.OADPNamespace, "ours-1", ours), request(fake.OADPNamespace, "theirs", victims),
		request(fake.Namespace, "tenants", ours))
	got := gather(t, world)
	require.Len(t, got.DeleteRequests, 1)
	assert.Equal(t, "ours-1", got.DeleteRequests[0].Name)
}

func backingOff(claims ...func(*oadpv1alpha1.NonAdminBackup)) *oadpv1alpha1.NonAdminBackup {
	nab := fake.NAB(name)
	nab.Status.Phase = oadpv1alpha1.NonAdminPhaseBackingOff
	for _, claim := range claims {
		claim(nab)
	}
	return nab
}

func TestJudgement(t *testing.T) {
	created := func(nab *oadpv1alpha1.NonAdminBackup) { nab.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated }
	invalid := func(nab *oadpv1alpha1.NonAdminBackup) { nab.Spec.BackupSpec.ExcludedNamespaces = []string{"x"} }
	const (
		excluded = "NonAdminBackup spec.backupSpec.excludedNamespaces is restricted"
		enforced = "the administrator has restricted spec.backupSpec.snapshotVolumes field value to false"
		gone     = "NonAdminBackup is finalized and its associated Velero Backup has been removed. " +
			"Please create a new NonAdminBackup to initiate a new backup"
		notSynced = "related Velero Backup to be synced from does not exist: no Velero Backup named \"" + victims +
			"\" has NonAdminBackup team/nightly as its origin"
	)
	accepted := check.Verdict{Accepted: true, Reason: "BackupAccepted", Message: "backup accepted"}
	tests := map[string]struct {
		nab   *oadpv1alpha1.NonAdminBackup
		there []client.Object
		want  check.Verdict
	}{
		"a valid spec":    {nab: backingOff(), want: accepted},
		"an invalid spec": {nab: backingOff(invalid), want: check.Verdict{Reason: "InvalidBackupSpec", Message: excluded}},
		"against the admin's policy": {
			nab:  backingOff(func(nab *oadpv1alpha1.NonAdminBackup) { nab.Spec.BackupSpec.SnapshotVolumes = new(true) }),
			want: check.Verdict{Reason: "InvalidBackupSpec", Message: enforced},
		},
		"no spec at all": {
			nab:  backingOff(func(nab *oadpv1alpha1.NonAdminBackup) { nab.Spec.BackupSpec = nil }),
			want: check.Verdict{Reason: "InvalidBackupSpec", Message: "NonAdminBackup spec.backupSpec is not set"},
		},
		"its Velero Backup is gone": {nab: backingOff(created), want: check.Verdict{Reason: "VeleroBackupNotFound", Message: gone}},
		"gone, and the spec invalid": {
			nab: backingOff(created, invalid), want: check.Verdict{Reason: "VeleroBackupNotFound", Message: gone},
		},
		"an invalid edit afterwards": {
			nab: backingOff(created, invalid), there: []client.Object{made(ours, "team", name)},
			want: check.Verdict{Reason: "InvalidBackupSpec", Message: excluded},
		},
		"synced": {
			nab: backingOff(labelNames(byNAC)), there: []client.Object{made(byNAC, "team", name)}, want: accepted,
		},
		"synced, with a spec that today's rules would refuse": {
			nab: backingOff(labelNames(byNAC), invalid), there: []client.Object{made(byNAC, "team", name)}, want: accepted,
		},
		"somebody else's under our name": {
			nab: backingOff(), there: []client.Object{made(ours, "crew", name)},
			want: check.Verdict{
				Reason: "VeleroBackupNotOwned",
				Message: "a Velero Backup named \"" + ours + "\" exists and was not made for this NonAdminBackup; " +
					"ask an administrator to remove it",
			},
		},
		"a forged label": {
			nab: backingOff(labelNames(victims)), there: []client.Object{made(victims, "crew", name)},
			want: check.Verdict{Reason: "VeleroBackupNotFound", Message: notSynced},
		},
		"a label that names nothing": {
			nab: backingOff(labelNames(victims)), want: check.Verdict{Reason: "VeleroBackupNotFound", Message: notSynced},
		},
		"a forged label does not excuse the spec": {
			nab: backingOff(labelNames(victims), statusNames(ours), invalid), there: []client.Object{made(victims, "crew", name)},
			want: check.Verdict{Reason: "InvalidBackupSpec", Message: excluded},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			world := fake.New(t, append(test.there, test.nab)...)
			world.Policy = policy.Policy{EnforceBackupSpec: &velerov1.BackupSpec{SnapshotVolumes: new(false)}}
			objects := gather(t, world)
			got, err := world.Backups.Gatherer.Judge(t.Context(), objects)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
			if test.nab.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff {
				assert.Equal(t, &test.want, objects.Verdict, "what keeps an object back is judged whenever it is looked at")
			}
		})
	}
}

func TestARefusalOfTheAPIServerSaysWhy(t *testing.T) {
	got := lifecycle.Refusal(fake.NAB(name), errors.New("spec.ttl: must be a duration"))
	assert.Equal(t, check.Verdict{
		Reason:  "VeleroBackupRefused",
		Message: "the Velero Backup could not be created from this spec: spec.ttl: must be a duration",
	}, got)
}
