package restore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/activities/fdb/restore"
	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	older = "blobstore://lab@s3.local:9000/lab-1?bucket=backups&region=r"
	newer = "blobstore://lab@s3.local:9000/lab-2?bucket=backups&region=r"
)

// gathered is Everything that a FoundationDBRestore needs; a test removes parts of it.
type gathered struct {
	restore             *fdbv1alpha1.FoundationDBRestore
	backup              *fdbv1alpha1.FoundationDBBackup
	destination, source *foundationdbv1beta2.FoundationDBCluster
	secret              *corev1.Secret
	more                []client.Object
}

func newGathered() *gathered {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team", Name: name} }
	g := &gathered{
		restore:     &fdbv1alpha1.FoundationDBRestore{ObjectMeta: named("back.up")},
		backup:      &fdbv1alpha1.FoundationDBBackup{ObjectMeta: named("lab")},
		destination: &foundationdbv1beta2.FoundationDBCluster{ObjectMeta: named("copy")},
		source:      &foundationdbv1beta2.FoundationDBCluster{ObjectMeta: named("lab")},
		secret:      &corev1.Secret{ObjectMeta: named("accounts")},
	}
	g.restore.UID, g.restore.Generation = "0a1b2c3d-4e5f-0000-0000-000000000000", 2
	g.restore.Spec = fdbv1alpha1.FoundationDBRestoreSpec{
		BackupName: "lab", DestinationClusterName: "copy", SourceClusterName: "lab",
		KeyRanges: []fdbv1alpha1.KeyRange{{Start: "a", End: `\xff`}},
	}
	g.backup.Spec.Credentials.SecretName = "accounts"
	point := &fdbv1alpha1.RestorePoint{Version: 9}
	g.backup.Status.Backups = []fdbv1alpha1.BackupDetails{
		{Tag: "default", URL: older, LatestRestorable: point},
		{Tag: "default", URL: newer, LatestRestorable: point},
		{Tag: "default", URL: newer + "3"},
	}
	for _, cluster := range []*foundationdbv1beta2.FoundationDBCluster{g.destination, g.source} {
		cluster.Spec.Version, cluster.Status.ConnectionString = "7.3.48", cluster.Name+":1@10.0.0.1:4500"
	}
	g.secret.Data = map[string][]byte{"credentials": []byte(`{"accounts":{"lab@s3.local":{"secret":"hush"}}}`)}
	return g
}

func (g *gathered) gather(t *testing.T) *restore.Objects {
	t.Helper()
	objects, err := g.gatherer(interceptor.Funcs{}).Gather(t.Context(), g.ref())
	require.NoError(t, err)
	return objects
}

func (g *gathered) ref() contract.ObjectRef {
	return contract.ObjectRef{Namespace: "team", Name: g.restore.Name, UID: "0a1b2c3d-4e5f-0000-0000-000000000000"}
}

func (g *gathered) gatherer(funcs interceptor.Funcs) *restore.Gatherer {
	builder := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithInterceptorFuncs(funcs).WithObjects(g.restore).WithObjects(g.more...)
	if g.backup != nil {
		builder.WithObjects(g.backup)
	}
	if g.destination != nil {
		builder.WithObjects(g.destination)
	}
	if g.source != nil {
		builder.WithObjects(g.source)
	}
	if g.secret != nil {
		builder.WithObjects(g.secret)
	}
	return &restore.Gatherer{Reader: builder.Build()}
}

func TestViewShowsTheObjects(t *testing.T) {
	g := newGathered()
	at := metav1.Unix(1_700_000_000, 0)
	g.restore.Spec.Timestamp = &at
	g.restore.Finalizers = []string{fdbv1alpha1.FinalizerAbort}
	view := g.gather(t).View()
	assert.Equal(t, contract.FDBRestoreView{
		Found: true, Held: true, Generation: 2, Owner: "copy:1", Tag: "back-up-0a1b2c3d", URL: newer,
		Container: "s3.local:9000/backups/lab-2", Timestamp: 1_700_000_000, KeyRanges: []string{`a \xff`},
	}, view)
	assert.NotContains(t, view.URL, "hush")

	g.restore.Spec.Version, g.restore.Spec.Tag = 5, strings.Repeat("t", 48)
	g.restore.Spec.RestoreState = fdbv1alpha1.RestoreStateStopped
	g.restore.Status = fdbv1alpha1.FoundationDBRestoreStatus{
		ObservedGeneration: 2, State: "Running",
		Plan:         &fdbv1alpha1.RestorePlan{Tag: "x", URL: older, Version: 7, Timestamp: &at, Destination: "copy:1"},
		Finalization: []fdbv1alpha1.RestoreTask{{Name: contract.FDBRestoreTaskUnlocked, Phase: "Completed"}},
	}
	view = g.gather(t).View()
	assert.Equal(t, strings.Repeat("t", 48)+"-0a1b2c3d", view.Tag)
	assert.True(t, view.Stop)
	assert.True(t, view.Observed)
	assert.EqualValues(t, 5, view.Wanted)
	assert.Zero(t, view.Timestamp, "the version wins")
	assert.Equal(t, older, view.URL, "that of the plan, whatever is newer")
	assert.Equal(t, &contract.FDBRestorePlan{
		Tag: "x", URL: older, Container: "s3.local:9000/backups/lab-1", Version: 7, Time: at.Unix(), Destination: "copy:1",
	}, view.Plan)
	assert.True(t, view.Finalized, "the tasks are those of the build that began them")

	g.restore.Status.Finalization = append(g.restore.Status.Finalization,
		fdbv1alpha1.RestoreTask{Name: contract.FDBRestoreTaskVersion, Phase: "InProgress"})
	assert.False(t, g.gather(t).View().Finalized)
	g.restore.Status.Finalization[1].Phase = "Failed"
	assert.True(t, g.gather(t).View().Finalized)
}

func TestWhatKeepsARestoreFromBeingStarted(t *testing.T) {
	at := metav1.Unix(1_700_000_000, 0)
	for title, tt := range map[string]struct {
		change func(*gathered)
		reason string // empty: nothing does
	}{
		"nothing":                    {func(*gathered) {}, ""},
		"a URL instead of a name":    {byURL(older), ""},
		"a URL on the worker's disk": {byURL("file:///backups/a"), ""}, // the worker decides whether it accepts files
		"no destination":             {func(g *gathered) { g.destination = nil }, fdbv1alpha1.ReasonClusterMissing},
		"a destination not ready":    {func(g *gathered) { g.destination.Status.ConnectionString = "" }, fdbv1alpha1.ReasonClusterNotReady},
		"no source, no time":         {func(g *gathered) { g.source = nil }, ""},
		"no source for a time": {func(g *gathered) {
			g.source, g.restore.Spec.Timestamp = nil, &at
		}, fdbv1alpha1.ReasonSourceMissing},
		"a source not ready for a time": {func(g *gathered) {
			g.source.Status.ConnectionString, g.restore.Spec.Timestamp = "", &at
		}, fdbv1alpha1.ReasonClusterNotReady},
		"no source for a time that a version overrides": {func(g *gathered) {
			g.source, g.restore.Spec.Timestamp, g.restore.Spec.Version = nil, &at, 5
		}, ""},
		"no backup":               {func(g *gathered) { g.backup = nil }, fdbv1alpha1.ReasonBackupMissing},
		"a backup not restorable": {func(g *gathered) { g.backup.Status.Backups = nil }, fdbv1alpha1.ReasonBackupMissing},
		"no Secret":               {func(g *gathered) { g.secret = nil }, fdbv1alpha1.ReasonSecretMissing},
		"no key in it":            {func(g *gathered) { g.secret.Data = nil }, fdbv1alpha1.ReasonSecretMissing},
		"another Secret": {func(g *gathered) {
			g.restore.Spec.Credentials = &fdbv1alpha1.CredentialsReference{SecretName: "none"}
		}, fdbv1alpha1.ReasonSecretMissing},
		"is not a credentials file": {func(g *gathered) {
			g.secret.Data["credentials"] = []byte("hush")
		}, fdbv1alpha1.ReasonCredentialsInvalid},
		"another's account":                      {byURL("blobstore://other@s3.local:9000/a?bucket=backups"), fdbv1alpha1.ReasonCredentialsInvalid},
		"a URL that is none":                     {byURL("s3://bucket/a"), fdbv1alpha1.ReasonURLInvalid},
		"a URL that uses the machine's identity": {byURL(older + "&sdk_auth=1"), fdbv1alpha1.ReasonURLInvalid},
	} {
		t.Run(title, func(t *testing.T) {
			g := newGathered()
			tt.change(g)
			problem := g.gather(t).View().Problem
			if tt.reason == "" {
				assert.Nil(t, problem)
				return
			}
			require.NotNil(t, problem)
			assert.Equal(t, fdbv1alpha1.ConditionMisconfiguredRestore, problem.Type)
			assert.Equal(t, tt.reason, problem.Reason, problem.Message)
			assert.NotContains(t, problem.Message, "hush")
		})
	}
}

func byURL(url string) func(*gathered) {
	return func(g *gathered) {
		g.restore.Spec.BackupName, g.restore.Spec.BackupURL = "", url
		g.restore.Spec.Credentials = &fdbv1alpha1.CredentialsReference{SecretName: "accounts"}
	}
}

func TestObjectOfAnotherUIDIsNone(t *testing.T) {
	g := newGathered()
	ref := g.ref()
	ref.UID = "other"
	objects, err := g.gatherer(interceptor.Funcs{}).Gather(t.Context(), ref)
	require.NoError(t, err)
	assert.Zero(t, objects.View())
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	g := newGathered()
	refused := interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption,
	) error {
		if _, is := o.(*corev1.Secret); is {
			return errors.New("away")
		}
		return c.Get(ctx, key, o, options...)
	}}
	_, err := g.gatherer(refused).Gather(t.Context(), g.ref())
	require.ErrorContains(t, err, "away")
}

func TestAgentsAreThoseOfTheCluster(t *testing.T) {
	g := newGathered()
	backupOf := func(name, cluster string) *fdbv1alpha1.FoundationDBBackup {
		b := &fdbv1alpha1.FoundationDBBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		b.Spec.ClusterName = cluster
		return b
	}
	find := func(cluster string) string {
		gatherer := g.gatherer(interceptor.Funcs{})
		objects, err := gatherer.Gather(t.Context(), g.ref())
		require.NoError(t, err)
		found, err := gatherer.Agents(t.Context(), objects, cluster)
		require.NoError(t, err)
		if found == nil {
			return ""
		}
		return found.Name
	}
	assert.Equal(t, "lab", find("lab"))
	assert.Equal(t, "lab", find("copy"), "there is no other")
	going := backupOf("a", "copy")
	going.DeletionTimestamp, going.Finalizers = new(metav1.Now()), []string{"x/y"}
	g.more = []client.Object{backupOf("z", "copy"), going}
	assert.Equal(t, "z", find("copy"))
	assert.Equal(t, "lab", find("lab"))
	g.more, g.restore.Spec.BackupName, g.backup = nil, "", nil
	assert.Empty(t, find("copy"))
}
