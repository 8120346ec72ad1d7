package gather_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/activities/fdb/gather"
	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// gathered is everything that a FoundationDBBackup needs; a test removes parts of it.
type gathered struct {
	object     *fdbv1alpha1.FoundationDBBackup
	cluster    *foundationdbv1beta2.FoundationDBCluster
	secret     *corev1.Secret
	deployment *appsv1.Deployment
}

func newGathered() *gathered {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team", Name: name} }
	g := &gathered{
		object:     &fdbv1alpha1.FoundationDBBackup{ObjectMeta: named("lab")},
		cluster:    &foundationdbv1beta2.FoundationDBCluster{ObjectMeta: named("lab")},
		secret:     &corev1.Secret{ObjectMeta: named("accounts")},
		deployment: &appsv1.Deployment{ObjectMeta: named("lab")},
	}
	g.object.UID, g.object.Spec.Credentials.SecretName = "uid-1", "accounts"
	g.cluster.Spec.Version, g.cluster.Status.RunningVersion = "7.4.1", "7.3.48"
	g.cluster.Status.ConnectionString = "lab_1:Ab3@10.0.0.1:4501:tls,[::1]:4501,db.team.svc:4501(fromHostname)"
	g.secret.Data = map[string][]byte{"credentials": []byte(`{"accounts":{"lab@s3.local":{"secret":"hush"}}}`)}
	return g
}

func (g *gathered) client(funcs interceptor.Funcs) client.Client {
	builder := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithInterceptorFuncs(funcs).WithObjects(g.object)
	if g.cluster != nil {
		builder.WithObjects(g.cluster)
	}
	if g.secret != nil {
		builder.WithObjects(g.secret)
	}
	if g.deployment != nil {
		builder.WithObjects(g.deployment)
	}
	return builder.Build()
}

func (g *gathered) gather(t *testing.T) *gather.Objects {
	t.Helper()
	gatherer := gather.Gatherer{Reader: g.client(interceptor.Funcs{})}
	objects, err := gatherer.Gather(t.Context(), contract.ObjectRef{Namespace: "team", Name: "lab", UID: "uid-1"})
	require.NoError(t, err)
	return objects
}

func TestAllThatABackupNeedsIsGathered(t *testing.T) {
	objects := newGathered().gather(t)
	require.NotNil(t, objects.Object)
	assert.Nil(t, objects.Problem)
	assert.Equal(t, "lab_1:Ab3", objects.Owner())
	assert.Equal(t, "7.3.48", objects.Cluster.Version, "what runs, not what shall")
	assert.NotNil(t, objects.Deployment)
	assert.Equal(t, []fdb.Account{{Name: "lab", Host: "s3.local"}}, objects.Accounts)
	assert.True(t, objects.Reachable())
	assert.Equal(t, contract.FDBDesired{
		State: "Running", Tag: "default", URL: "blobstore://lab@s3.local/lab?bucket=fdb-backups",
		TimestampFormat: fdb.DefaultTimestampFormat, SnapshotPeriodSeconds: 604800,
	}, objects.Desired(), "an object that was stored without its defaults")
}

func TestDesiredIsWhatTheSpecSays(t *testing.T) {
	g := newGathered()
	spec := &g.object.Spec
	spec.BackupState, spec.Tag, spec.SnapshotPeriodSeconds = fdbv1alpha1.BackupStatePaused, "hourly", 3600
	spec.Destination.TimestampFormat, spec.Destination.Path = new(""), "a/b"
	spec.KeyRanges = []fdbv1alpha1.KeyRange{{Start: "a", End: "b"}, {Start: `\x00`, End: `\xff`}}
	assert.Equal(t, contract.FDBDesired{
		State: "Paused", Tag: "hourly", URL: "blobstore://lab@s3.local/a/b?bucket=fdb-backups",
		SnapshotPeriodSeconds: 3600, KeyRanges: []string{"a b", `\x00 \xff`},
	}, g.gather(t).Desired())
}

func TestAnAccountWithoutANameIsADestination(t *testing.T) {
	g := newGathered()
	g.secret.Data["credentials"] = []byte(`{"accounts":{"@s3.local":{"api_key":"key","secret":"hush"}}}`)
	objects := g.gather(t)
	assert.Nil(t, objects.Problem)
	assert.Equal(t, "blobstore://@s3.local/lab?bucket=fdb-backups", objects.Desired().URL)
}

func TestWhatKeepsABackupFromRunningIsSaid(t *testing.T) {
	cases := map[string]struct {
		change    func(*gathered)
		reason    string
		says      string
		reachable bool
	}{
		"no cluster":          {func(g *gathered) { g.cluster = nil }, "ClusterMissing", `no FoundationDBCluster "lab"`, false},
		"no such cluster":     {func(g *gathered) { g.object.Spec.ClusterName = "other" }, "ClusterMissing", `"other"`, false},
		"no possible cluster": {func(g *gathered) { g.object.Spec.ClusterName = "../nodes" }, "ClusterMissing", "", false},
		"a cluster that is only being made": {
			func(g *gathered) { g.cluster.Status.ConnectionString = "" }, "ClusterNotReady", "status.connectionString", false,
		},
		"a second line in the cluster file": {
			func(g *gathered) { g.cluster.Status.ConnectionString += "\nx:y@10.0.0.2:4500" }, "ClusterNotReady", "", false,
		},
		"a command in the cluster file": {
			func(g *gathered) { g.cluster.Status.ConnectionString = "lab:$(id)@10.0.0.2:4500" }, "ClusterNotReady", "", false,
		},
		"an ID that would be another workflow's": {
			func(g *gathered) { g.cluster.Status.ConnectionString = "lab/x:id@10.0.0.2:4500" }, "ClusterNotReady", "", false,
		},
		"no version": {
			func(g *gathered) { g.cluster.Status.RunningVersion, g.cluster.Spec.Version = "", "" }, "ClusterNotReady", "version", false,
		},
		"a version that leads elsewhere": {
			func(g *gathered) { g.cluster.Status.RunningVersion = "7.3.48/../../bin" }, "ClusterNotReady", "version", false,
		},
		"no Secret":          {func(g *gathered) { g.secret = nil }, "SecretMissing", `no Secret "accounts"`, true},
		"no possible Secret": {func(g *gathered) { g.object.Spec.Credentials.SecretName = "a/b" }, "SecretMissing", "a/b", true},
		"no such key": {
			func(g *gathered) { g.object.Spec.Credentials.Key = "other" }, "SecretMissing", `no key "other"`, true,
		},
		"a Secret of another form": {
			func(g *gathered) { g.secret.Data["credentials"] = []byte("hush") }, "CredentialsInvalid", `key "credentials"`, true,
		},
		"an account that is not there": {
			func(g *gathered) { g.object.Spec.Destination.Account = "other" }, "DestinationInvalid", "other", true,
		},
		"a range that ends before it begins": {
			func(g *gathered) { g.object.Spec.KeyRanges = []fdbv1alpha1.KeyRange{{Start: "b", End: `\x61`}} },
			"KeyRangesInvalid", `range b \x61: its start must come before its end`, true,
		},
		"several things: the first": {
			func(g *gathered) { g.cluster, g.secret = nil, nil }, "ClusterMissing", "", false,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := newGathered()
			c.change(g)
			objects := g.gather(t)
			require.NotNil(t, objects.Problem)
			assert.Equal(t, fdbv1alpha1.ConditionMisconfiguredBackup, objects.Problem.Type)
			assert.Equal(t, c.reason, objects.Problem.Reason, objects.Problem.Message)
			assert.Contains(t, objects.Problem.Message, c.says)
			assert.NotContains(t, objects.Problem.Message, "hush")
			assert.Equal(t, c.reachable, objects.Reachable())
			if c.reason != "DestinationInvalid" && c.reason != "KeyRangesInvalid" && c.reachable {
				assert.Nil(t, objects.Credentials)
			}
			assert.NotPanics(t, func() { objects.Owner(); objects.Desired() })
		})
	}
}

func TestObjectOfAnotherUIDIsNotThere(t *testing.T) {
	g := newGathered()
	g.object.UID = "uid-2"
	assert.Nil(t, g.gather(t).Object)
}

func TestKindThatIsNotInstalledIsAMissingCluster(t *testing.T) {
	funcs := failGet(&foundationdbv1beta2.FoundationDBCluster{}, &meta.NoKindMatchError{
		GroupKind: schema.GroupKind{Kind: "FoundationDBCluster"},
	})
	gatherer := gather.Gatherer{Reader: newGathered().client(funcs)}
	objects, err := gatherer.Gather(t.Context(), contract.ObjectRef{Namespace: "team", Name: "lab", UID: "uid-1"})
	require.NoError(t, err)
	require.NotNil(t, objects.Problem)
	assert.Equal(t, fdbv1alpha1.ReasonClusterMissing, objects.Problem.Reason)
	assert.Contains(t, objects.Problem.Message, "install")
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	broken := errors.New("etcd is away")
	for name, object := range map[string]client.Object{
		"the object": &fdbv1alpha1.FoundationDBBackup{}, "the cluster": &foundationdbv1beta2.FoundationDBCluster{},
		"the Secret": &corev1.Secret{}, "the Deployment": &appsv1.Deployment{},
	} {
		t.Run(name, func(t *testing.T) {
			gatherer := gather.Gatherer{Reader: newGathered().client(failGet(object, broken))}
			_, err := gatherer.Gather(t.Context(), contract.ObjectRef{Namespace: "team", Name: "lab", UID: "uid-1"})
			require.ErrorIs(t, err, broken)
		})
	}
}

// failGet makes reads of one type of object fail.
func failGet(kind client.Object, err error) interceptor.Funcs {
	return interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption,
	) error {
		if reflect.TypeOf(kind) == reflect.TypeOf(into) {
			return err
		}
		return c.Get(ctx, key, into, options...)
	}}
}
