package fdb_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
)

// state and misconfigured are wishes for the conditions of those types.
func state(reason string) func(*fdbv1alpha1.FoundationDBBackup) bool {
	return has(fdbv1alpha1.ConditionIncorrectBackupState, reason)
}

func misconfigured(reason string) func(*fdbv1alpha1.FoundationDBBackup) bool {
	return has(fdbv1alpha1.ConditionMisconfiguredBackup, reason)
}

// awaitEvent waits for an Event on the object and returns its text.
func (x *tenant) awaitEvent(object *fdbv1alpha1.FoundationDBBackup, reason string) string {
	x.t.Helper()
	return x.awaitEventOf(object, reason)
}

func (x *tenant) awaitEventOf(object client.Object, reason string) string {
	x.t.Helper()
	var note string
	eventually.Succeeds(x.t, patience, func() error {
		ctx, cancel := context.WithTimeout(x.t.Context(), callPatience)
		defer cancel()
		var list corev1.EventList
		if err := admin.List(ctx, &list, client.InNamespace(x.namespace)); err != nil {
			return err
		}
		var others []string
		for _, event := range list.Items {
			if event.InvolvedObject.UID == object.GetUID() && event.Reason == reason {
				note = event.Message
				return nil
			}
			others = append(others, event.InvolvedObject.Name+" "+event.Reason)
		}
		time.Sleep(readEvery)
		return fmt.Errorf("no Event %s of %s; there are: %v", reason, object.GetName(), others)
	})
	return note
}

// What comes late is waited for, said, and found without anybody's help: the kind, the cluster, the Secret.
func TestWhatComesLate(t *testing.T) { onBothIfLong(t, whatComesLate) }

func whatComesLate(t *testing.T, x *tenant) {
	backup := x.backUp("late", func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.Credentials.SecretName = "later" })
	x.await(backup, "no cluster", misconfigured(fdbv1alpha1.ReasonClusterMissing))
	require.NoError(t, stack.CreateFDBCluster(t.Context(), x.namespace, "late", x.version(), ""))
	x.await(backup, "no connection string", misconfigured(fdbv1alpha1.ReasonClusterNotReady))
	x.cluster("late")
	x.await(backup, "no Secret", misconfigured(fdbv1alpha1.ReasonSecretMissing))
	assert.Contains(t, x.awaitEvent(backup, fdbv1alpha1.ReasonSecretMissing), `Secret "later"`)
	require.NoError(t, x.client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "later"},
		Data:       map[string][]byte{"credentials": []byte("not JSON")},
	}))
	x.await(backup, "no credentials", misconfigured(fdbv1alpha1.ReasonCredentialsInvalid))
	x.secret("later", "another", "secret")
	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.Destination.Account = "nobody" })
	x.await(backup, "no such account", misconfigured(fdbv1alpha1.ReasonDestinationInvalid))
	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.Destination.Account = "" })
	x.await(backup, "wrong credentials", state(fdbv1alpha1.ReasonToolFailing))
	x.credentials("later")
	x.await(backup, "reconciled", reconciled)
}

// A database that does not answer is told, and found again.
func TestAnUnreachableCluster(t *testing.T) { onBothIfLong(t, anUnreachableCluster) }

func anUnreachableCluster(t *testing.T, x *tenant) {
	x.cluster("far")
	x.unreachable("far", true)
	backup := x.backUp("far")
	x.await(backup, "unreachable", state(fdbv1alpha1.ReasonClusterUnreachable))
	x.awaitEvent(backup, fdbv1alpha1.ReasonClusterUnreachable)
	x.unreachable("far", false)
	done := x.await(backup, "reconciled", reconciled)
	require.Len(t, done.Status.Backups, 1)
}

func requireStarts(t *testing.T, database string, want int) {
	t.Helper()
	starts, err := sim.CallsOf(database, "fdbbackup", "start")
	require.NoError(t, err)
	done := 0
	for _, call := range starts {
		if call.Ended() && call.ExitCode == 0 && !call.Dry() {
			done++
		}
	}
	require.Equal(t, want, done, "%+v", starts)
}

// A tag on which somebody else's backup runs is left alone until that one ends.
func TestATagThatIsTaken(t *testing.T) {
	t.Parallel()
	x := newTenant(t)
	database := x.cluster("shared")
	x.runTool(database, "fdbbackup", "start", "-d", "file:///tmp/holdfast-elsewhere", "-t", "default", "-z")
	backup := x.backUp("shared")
	taken := x.await(backup, "tag taken", state(fdbv1alpha1.ReasonTagTaken))
	assert.Empty(t, taken.Status.Backups)
	x.runTool(database, "fdbbackup", "abort", "-t", "default")
	x.await(backup, "reconciled", reconciled)
}

// runTool runs a tool as an administrator of the database would.
func (x *tenant) runTool(database, tool string, args ...string) {
	x.t.Helper()
	cluster, err := sim.State(database)
	require.NoError(x.t, err)
	file := filepath.Join(x.t.TempDir(), "fdb.cluster")
	require.NoError(x.t, writeFile(file, cluster.Connection))
	ctx, cancel := context.WithTimeout(x.t.Context(), patience)
	defer cancel()
	output, err := exec.CommandContext(ctx, sim.Tool("7.4", tool), append(args, "-C", file)...).CombinedOutput()
	require.NoError(x.t, err, "%s", output)
}

// A backup that runs at the destination already is this object's, also if another program started it: nothing is started.
func TestABackupThatRunsAlreadyIsAdopted(t *testing.T) {
	t.Parallel()
	x, y := newTenant(t), newTenant(t)
	database := x.cluster("twice")
	cluster, err := sim.State(database)
	require.NoError(t, err)
	require.NoError(t, stack.CreateFDBCluster(t.Context(), y.namespace, "twice", standInVersion, cluster.Connection))
	path := func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.Destination.Path = x.namespace + "/common" }
	one := x.backUp("twice", path)
	other := y.backUp("twice", path)
	first, second := x.await(one, "reconciled", reconciled), y.await(other, "reconciled", reconciled)
	assert.Equal(t, first.Status.Backups[0].URL, second.Status.Backups[0].URL)
	requireStarts(t, database, 1)
}

// Without agents a backup stays submitted, and nothing is modified in a loop.
func TestNoAgents(t *testing.T) {
	t.Parallel()
	x := newTenant(t)
	database := x.cluster("idle")
	backup := x.backUp("idle", func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.AgentCount = ptr.To(int32(0)) })
	waiting := x.await(backup, "no agents", state(fdbv1alpha1.ReasonWaitingForAgents))
	assert.Contains(t, waiting.Status.Conditions[0].Message, "agentCount is 0")
	// Its slot is free again before long, with a condition.
	x.await(backup, "stalled or waiting", func(o *fdbv1alpha1.FoundationDBBackup) bool {
		return state(fdbv1alpha1.ReasonWaitingForAgents)(o) || state(fdbv1alpha1.ReasonSnapshotStalled)(o)
	})
	modified, err := sim.CallsOf(database, "fdbbackup", "modify")
	require.NoError(t, err)
	assert.Empty(t, modified)
	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.AgentCount = ptr.To(int32(1)) })
	x.await(backup, "reconciled", reconciled)
	requireStarts(t, database, 1)
}

// The agents' Deployment: made, mended, followed through an upgrade, and never taken from somebody else.
func TestTheAgents(t *testing.T) {
	t.Parallel()
	x := newTenant(t)
	x.cluster("crew")
	foreign := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "crew"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}
	require.NoError(t, x.client.Create(t.Context(), foreign))
	backup := x.backUp("crew")
	x.await(backup, "not ours", has(fdbv1alpha1.ConditionIncorrectDeployment, fdbv1alpha1.ReasonDeploymentNotOurs))
	require.NoError(t, x.client.Delete(t.Context(), foreign))
	x.await(backup, "reconciled", reconciled)

	x.kubectl("scale", "deployment", "crew", "--replicas=3")
	old := x.awaitAgents("crew", "the scale is undone", func(spec appsv1.DeploymentSpec) bool {
		return *spec.Replicas == 1
	}).Template.Spec.Containers[0].Image
	assert.True(t, strings.HasSuffix(old, ":"+standInVersion), old)
	cluster, err := sim.State(ownerOf(x.t, x.namespace, "crew"))
	require.NoError(t, err)
	require.NoError(t, stack.CreateFDBCluster(t.Context(), x.namespace, "crew", "7.1.63", cluster.Connection))
	x.awaitAgents("crew", "the agents follow the cluster's version", func(spec appsv1.DeploymentSpec) bool {
		return strings.HasSuffix(spec.Template.Spec.Containers[0].Image, ":7.1.63")
	})
	assert.Equal(t, "7.1.63", x.get(backup).Annotations[fdbv1alpha1.AnnotationClusterVersion])
	x.await(backup, "reconciled", reconciled)
}

// awaitAgents waits until the agents' Deployment is as wished and returns it.
func (x *tenant) awaitAgents(name, want string, ok func(appsv1.DeploymentSpec) bool) appsv1.DeploymentSpec {
	x.t.Helper()
	found := &appsv1.Deployment{}
	eventually.Succeeds(x.t, patience, func() error {
		ctx, cancel := context.WithTimeout(x.t.Context(), callPatience)
		defer cancel()
		if err := x.client.Get(ctx, client.ObjectKey{Namespace: x.namespace, Name: name}, found); err != nil || ok(found.Spec) {
			return err
		}
		time.Sleep(readEvery)
		return fmt.Errorf("wanted: %s; there is %s", want, inWords(found.Spec))
	})
	return found.Spec
}

// Two backups of one database that disagree about a pause are told of each other, and nothing is toggled to and fro.
func TestTwoBackupsDisagreeAboutAPause(t *testing.T) {
	t.Parallel()
	x := newTenant(t)
	database := x.cluster("duo")
	on := func(tag string) change {
		return func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.ClusterName, spec.Tag = "duo", tag }
	}
	one, other := x.backUp("duo-one", on("one")), x.backUp("duo-other", on("other"))
	x.await(one, "reconciled", reconciled)
	x.await(other, "reconciled", reconciled)
	x.edit(other, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.BackupState = fdbv1alpha1.BackupStatePaused })
	opposed := x.await(other, "opposed", state(fdbv1alpha1.ReasonPauseDisagreement))
	assert.Contains(t, opposed.Status.Conditions[0].Message, "duo-one")
	told := x.await(one, "told", state(fdbv1alpha1.ReasonPauseDisagreement))
	assert.Contains(t, told.Status.Conditions[0].Message, "duo-other")
	paused, err := sim.CallsOf(database, "fdbbackup", "pause")
	require.NoError(t, err)
	assert.Empty(t, paused)
	x.edit(one, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.BackupState = fdbv1alpha1.BackupStatePaused })
	x.await(one, "paused", reconciled)
	x.await(other, "paused", reconciled)
	x.edit(one, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.BackupState = fdbv1alpha1.BackupStateStopped })
	x.await(one, "stopped", reconciled)
	x.await(other, "still paused", reconciled)
	x.edit(other, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.BackupState = fdbv1alpha1.BackupStateRunning })
	x.await(other, "running", reconciled)
}

// Tag and ranges are those of a new backup; the old one runs until that begins.
func TestAnotherTagAndOtherRanges(t *testing.T) {
	t.Parallel()
	x := newTenant(t)
	database := x.cluster("ranges")
	backup := x.backUp("ranges")
	x.await(backup, "reconciled", reconciled)
	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.Tag = "other" })
	x.await(backup, "another tag", reconciled)
	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) {
		spec.KeyRanges = []fdbv1alpha1.KeyRange{{Start: "a", End: `b\x00`}}
	})
	last := x.await(backup, "other ranges", reconciled)
	require.Len(t, last.Status.Backups, 3)
	assert.Equal(t, []string{`a b\x00`}, last.Status.Backups[2].KeyRanges)
	requireStarts(t, database, 3)
	// Without a time in its path nothing can be started again in the same place.
	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.Destination.TimestampFormat = ptr.To("") })
	x.await(backup, "in a place without time", reconciled)
	x.edit(backup, func(spec *fdbv1alpha1.FoundationDBBackupSpec) { spec.KeyRanges = nil })
	refused := x.await(backup, "refused", misconfigured(fdbv1alpha1.ReasonContainerUsed))
	assert.Equal(t, "RunningDifferentially", refused.Status.Backups[3].State, "the old one runs on")
}
