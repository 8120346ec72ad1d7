package digests_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/testsuite"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/digests"
	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/digest"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/workflows/contract"
)

const nightly = "nightly"

var completed = time.Date(2026, 11, 25, 2, 0, 0, 0, time.UTC)

type scene struct {
	*fake.World
	t      *testing.T
	folder string
	now    time.Time
}

// newScene is a world with a complete backup whose digests are due, and its archive of one Secret.
func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{World: fake.New(t, fake.Taken(nightly, fake.AdminLocation, "")...), t: t, folder: t.TempDir(), now: completed.Add(time.Second)}
	made := s.velero()
	at := metav1.NewTime(completed)
	made.Status.CompletionTimestamp = &at
	metav1.SetMetaDataAnnotation(&made.ObjectMeta, holdfastv1alpha1.AnnotationDigests, holdfastv1alpha1.DigestsDue)
	require.NoError(t, s.Client.Update(t.Context(), made))
	s.write(fake.Archive(t, map[string]string{
		"resources/secrets/namespaces/team/keys.json": `{"kind":"Secret","data":{"password":"cA=="}}`,
	}))
	return s
}

func (s *scene) velero() *velerov1.Backup { return s.Velero(fake.VeleroName(nightly)) }

func (s *scene) write(archive []byte) {
	s.t.Helper()
	name := fake.VeleroName(nightly)
	require.NoError(s.t, os.MkdirAll(filepath.Join(s.folder, "backups", name), 0o700))
	require.NoError(s.t, os.WriteFile(filepath.Join(s.folder, "backups", name, name+".tar.gz"), archive, 0o600))
}

func (s *scene) record() error {
	s.t.Helper()
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	s.Digests(s.folder, func() time.Time { return s.now }).Register(env)
	_, err := env.ExecuteActivity(contract.RecordDigests.Name, contract.BackupStep{Ref: fake.Ref(nightly)})
	return err
}

func (s *scene) sets() *digests.Sets {
	return &digests.Sets{Cluster: activities.Cluster{Client: s.Client}, OADPNamespace: fake.OADPNamespace}
}

func TestDigestsAreRecordedOnce(t *testing.T) {
	s := newScene(t)
	for range 2 {
		require.NoError(t, s.record())
	}
	made := s.velero()
	assert.Equal(t, holdfastv1alpha1.DigestsRecorded, made.Annotations[holdfastv1alpha1.AnnotationDigests])
	set, err := s.sets().Of(t.Context(), made)
	require.NoError(t, err)
	assert.Equal(t, []digest.Place{{Resource: "secrets", Name: "keys"}}, set.Places())
	config := s.Modifier(made.Name + "-digests")
	assert.NotContains(t, string(config.BinaryData["digests"]), "password")
	require.Len(t, config.OwnerReferences, 1)
	assert.Equal(t, made.UID, config.OwnerReferences[0].UID, "it goes with the Velero Backup")
	assert.Equal(t, []string{"create Secret", "create ConfigMap", "patch Backup"}, s.Writes())

	made.UID = "another"
	set, err = s.sets().Of(t.Context(), made)
	require.NoError(t, err)
	assert.Nil(t, set, "a Velero Backup that is made again has none")
}

// A worker that was killed between the record and the annotation records it again.
func TestASetOfAnEarlierAttemptIsReplaced(t *testing.T) {
	s := newScene(t)
	require.NoError(t, s.Client.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: fake.VeleroName(nightly) + "-digests"},
		BinaryData: map[string][]byte{"digests": []byte("half")},
	}))
	require.NoError(t, s.record())
	set, err := s.sets().Of(t.Context(), s.velero())
	require.NoError(t, err)
	assert.Len(t, set.Places(), 1)
}

func TestWhyThereAreNoDigests(t *testing.T) {
	for title, test := range map[string]struct {
		change func(*scene)
		want   string
	}{
		"brought back": {func(s *scene) {
			made := s.velero()
			made.CreationTimestamp = metav1.NewTime(completed.Add(time.Minute))
			require.NoError(s.t, s.Client.Update(s.t.Context(), made))
		}, "not recorded: Velero has found the backup in the object store"},
		"a day later": {func(s *scene) { s.now = completed.Add(25 * time.Hour) }, "not recorded within a day"},
		"no archive":  {func(s *scene) { s.write([]byte("no archive")) }, "not recorded: read backups/"},
	} {
		t.Run(title, func(t *testing.T) {
			s := newScene(t)
			test.change(s)
			require.NoError(t, s.record())
			assert.Contains(t, s.velero().Annotations[holdfastv1alpha1.AnnotationDigests], test.want)
		})
	}
}

// A location or its credential may be wrong for a moment, as while a Secret is replaced.
func TestALocationThatCannotBeUsedIsTriedAgain(t *testing.T) {
	s := newScene(t)
	recorder := s.Digests(s.folder, func() time.Time { return s.now })
	recorder.Stores.OpenLocation = func(context.Context, *velerov1.BackupStorageLocation) (*objectstore.Store, error) {
		return nil, objectstore.Unusable("open the object store", "the Secret has no such key")
	}
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	recorder.Register(env)
	_, err := env.ExecuteActivity(contract.RecordDigests.Name, contract.BackupStep{Ref: fake.Ref(nightly)})
	require.ErrorContains(t, err, "has no such key")
	assert.Equal(t, holdfastv1alpha1.DigestsDue, s.velero().Annotations[holdfastv1alpha1.AnnotationDigests])
}

func TestABackupThatIsToBeDeletedIsLeftAlone(t *testing.T) {
	s := newScene(t)
	nab := s.Read(nightly)
	nab.Spec.DeleteBackup = true
	require.NoError(t, s.Client.Update(t.Context(), nab))
	require.NoError(t, s.record())
	assert.Equal(t, holdfastv1alpha1.DigestsDue, s.velero().Annotations[holdfastv1alpha1.AnnotationDigests])
}

func TestAKeyThatIsBrokenIsToldAndNotReplaced(t *testing.T) {
	s := newScene(t)
	require.NoError(t, s.Client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: digests.SecretName}, Data: map[string][]byte{"key": []byte("short")},
	}))
	require.ErrorContains(t, s.record(), "delete the Secret to get a new one")
	key := &corev1.Secret{}
	require.NoError(t, s.Client.Get(t.Context(), types.NamespacedName{Namespace: fake.OADPNamespace, Name: digests.SecretName}, key))
	assert.Equal(t, "short", string(key.Data["key"]))
}

// A worker reads a few archives at a time. An activity that finds it busy is retried later, and blocks nothing.
func TestFewArchivesAreReadAtATime(t *testing.T) {
	s := newScene(t)
	recorder := s.Digests(s.folder, func() time.Time { return s.now })
	reading, end := make(chan struct{}), make(chan struct{})
	open := recorder.Stores.OpenLocation
	recorder.Stores.OpenLocation = func(ctx context.Context, at *velerov1.BackupStorageLocation) (*objectstore.Store, error) {
		reading <- struct{}{}
		<-end
		return open(ctx, at)
	}
	record := func() error {
		env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
		recorder.Register(env)
		_, err := env.ExecuteActivity(contract.RecordDigests.Name, contract.BackupStep{Ref: fake.Ref(nightly)})
		return err
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { assert.NoError(t, record()) })
		<-reading
	}
	require.ErrorContains(t, record(), "waits for the archives of other backups to be read")
	close(end)
	group.Wait()
}
