package fdbtools_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"holdfast.dev/holdfast/activities/fdb/restore"
	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/fdbsim/state"
	"holdfast.dev/holdfast/workflows/contract"
)

// restoreScene is a scene with a second FoundationDB cluster, and a FoundationDBRestore of the first one's backup into it.
type restoreScene struct {
	*scene
	into    string // description:id
	target  *foundationdbv1beta2.FoundationDBCluster
	restore *fdbv1alpha1.FoundationDBRestore
}

func newRestoreScene(t *testing.T) *restoreScene {
	t.Helper()
	s := &restoreScene{scene: newScene(t), into: "copy:def456"}
	connection, err := s.sim.NewCluster("copy", "def456")
	require.NoError(t, err)
	s.target = &foundationdbv1beta2.FoundationDBCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "copy"}}
	s.target.Status.ConnectionString, s.target.Status.RunningVersion = connection, "7.3.72"
	s.restore = &fdbv1alpha1.FoundationDBRestore{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "back", UID: "0a1b2c3d-1111-2222-3333-444444444444", Generation: fdbGen,
	}}
	s.restore.Spec = fdbv1alpha1.FoundationDBRestoreSpec{
		BackupURL: s.url(stamp), Credentials: &fdbv1alpha1.CredentialsReference{SecretName: "accounts"},
		DestinationClusterName: "copy", SourceClusterName: "lab",
	}
	return s
}

func (s *restoreScene) restoreRef() contract.ObjectRef {
	return contract.ObjectRef{Namespace: "team", Name: "back", UID: string(s.restore.UID)}
}

func (s *restoreScene) tag() string { return restore.Tag(s.restore) }

// taken has a backup of keys that can be restored, and goes on. It returns a version that can be restored.
func (s *restoreScene) taken(keys map[string]string) int64 {
	s.t.Helper()
	require.NoError(s.t, s.sim.Set(s.cluster, keys))
	version, err := s.sim.Version(s.cluster)
	require.NoError(s.t, err)
	require.True(s.t, s.command(contract.FDBStart, s.url(stamp)).Done)
	s.agent()
	return s.restorable(version)
}

// restorable waits until more than a version can be restored, by the agents' own account, and returns up to where.
func (s *restoreScene) restorable(version int64) int64 {
	s.t.Helper()
	latest := int64(0)
	eventually.Succeeds(s.t, fdbPatience, func() error {
		seen := s.inspect(false)
		if seen.Failure != nil {
			return fmt.Errorf("%s: %s", seen.Failure.Class, seen.Failure.Message)
		}
		tag := seen.Tags[0]
		if tag.Latest != nil {
			latest = tag.Latest.Version
		}
		if tag.State != fdb.StateRunningDifferentially || latest <= version {
			return fmt.Errorf("the backup is %s, restorable up to version %d, and should be beyond %d", tag.State, latest, version)
		}
		return nil
	})
	return latest
}

// lookUntil looks until what is seen is as wished, and returns that.
func (s *restoreScene) lookUntil(want string, ok func(contract.FDBRestoreInspection) bool) (seen contract.FDBRestoreInspection) {
	s.t.Helper()
	eventually.Succeeds(s.t, fdbPatience, func() error {
		if seen = s.look(false); ok(seen) {
			return nil
		}
		return fmt.Errorf("want: %s; seen: %+v", want, seen)
	})
	return seen
}

// planned has the status say what is restored.
func (s *restoreScene) planned(version int64) {
	s.restore.Status.Plan = &fdbv1alpha1.RestorePlan{Tag: s.tag(), URL: s.url(stamp), Version: version, Destination: s.into}
}

// restoreAgent runs an agent of the destination.
func (s *restoreScene) restoreAgent() {
	s.t.Helper()
	folder := s.t.TempDir()
	files := map[string][]byte{"fdb.cluster": []byte(s.target.Status.ConnectionString), "accounts": s.secret.Data["credentials"]}
	for name, content := range files {
		require.NoError(s.t, os.WriteFile(filepath.Join(folder, name), content, 0o600))
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	agent := exec.CommandContext(ctx, s.sim.Tool("7.3", "backup_agent"), "-C", filepath.Join(folder, "fdb.cluster"))
	agent.Env = []string{"FDB_BLOB_CREDENTIALS=" + filepath.Join(folder, "accounts")}
	agent.Dir = folder
	require.NoError(s.t, agent.Start())
	s.t.Cleanup(func() {
		cancel()
		_ = agent.Wait()
	})
}

func performRestore[Out any](s *restoreScene, name string, in any) (Out, error) {
	s.t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	builder := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(s.object, s.secret, s.kind, s.restore)
	if s.target != nil {
		builder.WithObjects(s.target)
	}
	(&restore.Tools{Reader: builder.Build(), Runner: s.tools, Locker: s.locker}).Register(env)
	var out Out
	answer, err := env.ExecuteActivity(name, in)
	if err == nil {
		require.NoError(s.t, answer.Get(&out))
	}
	return out, err
}

func (s *restoreScene) look(resolve bool) contract.FDBRestoreInspection {
	s.t.Helper()
	seen, err := performRestore[contract.FDBRestoreInspection](s, contract.InspectFDBRestore.Name,
		contract.FDBRestoreInspect{Ref: s.restoreRef(), Resolve: resolve})
	require.NoError(s.t, err)
	return seen
}

// operate runs a command for the plan and the present generation.
func (s *restoreScene) operate(operation contract.FDBOperation) contract.FDBOutcome {
	s.t.Helper()
	return s.order(contract.FDBCommand{
		Ref: s.restoreRef(), Operation: operation, Generation: fdbGen, Tag: s.tag(), URL: s.url(stamp),
	})
}

func (s *restoreScene) order(command contract.FDBCommand) contract.FDBOutcome {
	s.t.Helper()
	outcome, err := performRestore[contract.FDBOutcome](s, contract.RunFDBRestoreCommand.Name, command)
	require.NoError(s.t, err)
	return outcome
}

func (s *restoreScene) check(task string, deadline time.Time) (contract.FinalizationOutcome, error) {
	s.t.Helper()
	return performRestore[contract.FinalizationOutcome](s, contract.FinalizeFDBRestore.Name,
		contract.FDBRestoreTaskStep{Ref: s.restoreRef(), Task: task, Deadline: deadline})
}

// runsInto has a restore on a tag of the destination, without agents having done anything.
func (s *restoreScene) runsInto(tag, phase string) {
	s.t.Helper()
	const uid = "00112233445566778899aabbccddeeff"
	require.NoError(s.t, s.sim.Change(s.into, func(c *state.Cluster) error {
		c.Restores = append(c.Restores, &state.Restore{Tag: tag, UID: uid, State: phase, URL: s.url(stamp), Version: 7, CurrentVersion: -1})
		if phase != state.RestoreCompleted && phase != state.RestoreAborted {
			c.LockUID = uid
		}
		return nil
	}))
}

// told are the runs of a sub-command of fdbrestore for the destination.
func (s *restoreScene) told(sub string) []fdbsim.Call {
	s.t.Helper()
	calls, err := s.sim.CallsOf(s.into, "fdbrestore", sub)
	require.NoError(s.t, err)
	return calls
}
