package activities_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/k8s/fdb/agents"
	"holdfast.dev/holdfast/workflows/contract"
)

// fdbWorld is a Kubernetes cluster in memory with a FoundationDBBackup and all that it needs.
type fdbWorld struct {
	client.Client
	backups *activities.FDBBackups
	events  chan string
	// writes are "verb kind"; before is called ahead of each.
	writes []string
	before func(write string)
}

var fdbRef = contract.ObjectRef{Namespace: "team", Name: "lab", UID: "u"}

func newFDBWorld(objects ...client.Object) *fdbWorld {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team", Name: name} }
	object := &fdbv1alpha1.FoundationDBBackup{ObjectMeta: meta("lab")}
	object.UID, object.Generation, object.Spec.Credentials.SecretName = "u", 1, "accounts"
	cluster := &foundationdbv1beta2.FoundationDBCluster{ObjectMeta: meta("lab")}
	cluster.Spec.Version, cluster.Status.ConnectionString = "7.3.48", "lab:1@10.0.0.1:4500"
	secret := &corev1.Secret{
		ObjectMeta: meta("accounts"), Data: map[string][]byte{"credentials": []byte(`{"accounts":{"lab@s3.local":{"secret":"hush"}}}`)},
	}
	w := &fdbWorld{before: func(string) {}}
	note := func(verb string, o client.Object) {
		kind := strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(typeName(o), "*v1."), "*v1alpha1."))
		w.before(verb + " " + kind)
		w.writes = append(w.writes, verb+" "+kind)
	}
	recorder := events.NewFakeRecorder(100)
	w.events = recorder.Events
	base := fakeclient.NewClientBuilder().WithScheme(k8s.Scheme()).WithStatusSubresource(&fdbv1alpha1.FoundationDBBackup{}).
		WithObjects(append(objects, object, cluster, secret, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})...)
	w.Client = base.WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			note("create", o)
			return c.Create(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			note("patch", o)
			return c.Patch(ctx, o, p, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption,
		) error {
			note(sub, o)
			return c.SubResource(sub).Patch(ctx, o, p, options...)
		},
	}).Build()
	w.backups = &activities.FDBBackups{Client: w.Client, Gatherer: &fdb.Gatherer{Reader: w.Client}, Events: recorder}
	return w
}

func typeName(o client.Object) string {
	switch o.(type) {
	case *appsv1.Deployment:
		return "Deployment"
	case *fdbv1alpha1.FoundationDBBackup:
		return "Backup"
	}
	return "other"
}

// do runs an activity as a worker does.
func (w *fdbWorld) do(t *testing.T, name string, in any) (contract.FDBBackupView, error) {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	w.backups.Register(env)
	var view contract.FDBBackupView
	answer, err := env.ExecuteActivity(name, in)
	if err == nil {
		require.NoError(t, answer.Get(&view))
	}
	return view, err
}

func (w *fdbWorld) must(t *testing.T, name string, in any) contract.FDBBackupView {
	t.Helper()
	view, err := w.do(t, name, in)
	require.NoError(t, err)
	return view
}

func (w *fdbWorld) object(t *testing.T) *fdbv1alpha1.FoundationDBBackup {
	t.Helper()
	object := &fdbv1alpha1.FoundationDBBackup{}
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "lab"}, object))
	return object
}

func (w *fdbWorld) deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	deployment := &appsv1.Deployment{}
	require.NoError(t, client.IgnoreNotFound(w.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "lab"}, deployment)))
	return deployment
}

// wrote empties the list of writes and returns it.
func (w *fdbWorld) wrote() []string {
	writes := w.writes
	w.writes = nil
	return writes
}

func (w *fdbWorld) told() []string {
	var told []string
	for len(w.events) > 0 {
		told = append(told, <-w.events)
	}
	return told
}

var fdbStep = contract.FDBBackupStep{Ref: fdbRef}

func TestTheFinalizerOfAFoundationDBBackupIsAddedOnce(t *testing.T) {
	w := newFDBWorld()
	view := w.must(t, contract.ObserveFDBBackup.Name, fdbStep)
	require.True(t, view.Held)
	require.True(t, view.DeleteWanted)
	require.Equal(t, []string{fdbv1alpha1.FinalizerStop, fdbv1alpha1.FinalizerDelete}, w.object(t).Finalizers)
	require.Equal(t, []string{"patch backup"}, w.wrote())
	require.Equal(t, view, w.must(t, contract.ObserveFDBBackup.Name, fdbStep))
	require.Empty(t, w.wrote())
	other := fdbStep
	other.Ref.UID = "another"
	require.Zero(t, w.must(t, contract.ObserveFDBBackup.Name, other), "another object has the name now")
	require.NoError(t, w.Delete(t.Context(), w.object(t)))
	w.wrote()
	require.True(t, w.must(t, contract.ObserveFDBBackup.Name, fdbStep).BeingDeleted)
	require.Empty(t, w.wrote())
}

func TestAPlanIsWrittenOnce(t *testing.T) {
	w := newFDBWorld()
	plan := contract.FDBPlan{Ref: fdbRef, Generation: 1, At: time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC).Unix()}
	stale := plan
	stale.Generation = 2
	require.Empty(t, w.must(t, contract.PlanFDBBackup.Name, stale).Backups, "decided upon another spec")
	require.Empty(t, w.wrote())
	view := w.must(t, contract.PlanFDBBackup.Name, plan)
	require.Equal(t, []string{"status backup"}, w.wrote())
	plan.At += 60
	require.Equal(t, view.Backups, w.must(t, contract.PlanFDBBackup.Name, plan).Backups, "a repeated start goes to the same place")
	require.Empty(t, w.wrote())
	require.Equal(t, []fdbv1alpha1.BackupDetails{{
		Tag: "default", URL: "blobstore://lab@s3.local/lab-2026-08-01T10-00-00Z?bucket=fdb-backups", State: fdb.StateNeverRan,
	}}, w.object(t).Status.Backups)
}

func TestFindingsArePublished(t *testing.T) {
	w := newFDBWorld()
	findings := contract.FDBFindings{Ref: fdbRef, Generation: 1, Conditions: []contract.FDBCondition{{
		Type: fdbv1alpha1.ConditionIncorrectBackupState, Reason: fdbv1alpha1.ReasonTagTaken, Message: "m",
	}}}
	conflicts := 0
	w.before = func(write string) { // somebody labels the object meanwhile, once
		if write == "status backup" && conflicts == 0 {
			conflicts++
			object := w.object(t)
			object.Labels = map[string]string{"seen": "yes"}
			require.NoError(t, w.Update(t.Context(), object))
		}
	}
	require.False(t, w.must(t, contract.PublishFDBBackup.Name, findings).Reconciled)
	require.Equal(t, 1, conflicts)
	require.Equal(t, "yes", w.object(t).Labels["seen"])
	require.Equal(t, fdbv1alpha1.ReasonTagTaken, w.object(t).Status.Conditions[0].Reason)
	told := w.told()
	require.Len(t, told, 1)
	require.Contains(t, told[0], "Warning TagTaken IncorrectBackupState: m")
	w.wrote()
	version := w.object(t).ResourceVersion
	w.must(t, contract.PublishFDBBackup.Name, findings)
	require.Empty(t, w.wrote(), "nothing has changed")
	require.Empty(t, w.told())
	require.Equal(t, version, w.object(t).ResourceVersion)

	other := findings
	other.Ref.UID, other.Conditions = "another", nil
	require.Zero(t, w.must(t, contract.PublishFDBBackup.Name, other))
	require.Empty(t, w.wrote(), "the status of another object of the name")
	findings.Conditions = nil
	require.True(t, w.must(t, contract.PublishFDBBackup.Name, findings).Reconciled)
	require.Len(t, w.told(), 1)
}

func TestTheAgentsAreMadeAndMended(t *testing.T) {
	drift := func(change func(*appsv1.Deployment)) func(*testing.T, *fdbWorld) {
		return func(t *testing.T, w *fdbWorld) {
			w.must(t, contract.ApplyFDBAgents.Name, fdbStep)
			deployment := w.deployment(t)
			change(deployment)
			require.NoError(t, w.Update(t.Context(), deployment))
		}
	}
	tests := map[string]struct {
		prepare func(*testing.T, *fdbWorld)
		want    []string
		current bool
		says    string
	}{
		"missing":          {want: []string{"create deployment"}, current: true},
		"as they shall be": {prepare: drift(func(*appsv1.Deployment) {}), current: true},
		"another image": {
			prepare: drift(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil" }),
			want:    []string{"patch deployment"}, current: true,
		},
		"another number": {
			prepare: drift(func(d *appsv1.Deployment) { none := int32(0); d.Spec.Replicas = &none }),
			want:    []string{"patch deployment"}, current: true,
		},
		"a selector that cannot be patched": {
			prepare: drift(func(d *appsv1.Deployment) { d.Spec.Selector.MatchLabels = map[string]string{"app": "x"} }),
			says:    "delete the Deployment",
		},
		"somebody else's of the name": {prepare: func(t *testing.T, w *fdbWorld) {
			require.NoError(t, w.Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lab"}}))
		}},
		"a backup that is being deleted": {prepare: func(t *testing.T, w *fdbWorld) {
			w.must(t, contract.ObserveFDBBackup.Name, fdbStep)
			require.NoError(t, w.Delete(t.Context(), w.object(t)))
		}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newFDBWorld()
			if test.prepare != nil {
				test.prepare(t, w)
			}
			w.wrote()
			view := w.must(t, contract.ApplyFDBAgents.Name, fdbStep)
			assert.Equal(t, test.want, w.wrote())
			assert.Equal(t, test.current, view.Agents.Current)
			assert.Contains(t, view.Agents.Invalid, test.says)
			if test.current {
				wanted, err := agents.Deployment(w.object(t), "7.3.48")
				require.NoError(t, err)
				assert.Equal(t, wanted.Spec.Template.Spec.Containers[0].Image, w.deployment(t).Spec.Template.Spec.Containers[0].Image)
				assert.True(t, view.Agents.Ours)
			}
		})
	}
}

func TestAgentsThatSomebodyMadeMeanwhileStay(t *testing.T) {
	w := newFDBWorld()
	w.before = func(write string) {
		if write == "create deployment" {
			w.before = func(string) {}
			require.NoError(t, w.Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lab"}}))
		}
	}
	view := w.must(t, contract.ApplyFDBAgents.Name, fdbStep)
	require.True(t, view.Agents.Exists)
	require.False(t, view.Agents.Ours)
}

func TestAFoundationDBBackupIsLetGo(t *testing.T) {
	for abandoned, event := range map[string]string{"": "Normal Stopped", "the cluster is gone": "Warning Abandoned the cluster is gone"} {
		t.Run(event, func(t *testing.T) {
			w := newFDBWorld()
			w.askForData(t, false)
			w.must(t, contract.ObserveFDBBackup.Name, fdbStep)
			release := contract.FDBRelease{Ref: fdbRef, Abandoned: abandoned}
			require.True(t, w.must(t, contract.ReleaseFDBBackup.Name, release).Held, "nobody has deleted it")
			require.NoError(t, w.Delete(t.Context(), w.object(t)))
			w.must(t, contract.ReleaseFDBBackup.Name, release)
			err := w.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "lab"}, &fdbv1alpha1.FoundationDBBackup{})
			require.True(t, apierrors.IsNotFound(err), "%v", err)
			told := w.told()
			require.Len(t, told, 1)
			require.Contains(t, told[0], event)
			require.False(t, w.must(t, contract.ReleaseFDBBackup.Name, release).Found, "again")
			require.Empty(t, w.told())
		})
	}
}
