package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	command "holdfast.dev/holdfast/starter/tenant"
)

// plugged is who uses the plugin.
const plugged = "grace"

// pluginLimit is when a command that hangs ends, as by Ctrl-C, so that its output is seen.
const pluginLimit = 8 * time.Minute

// answer is what `kubectl holdfast` has printed, and its exit status.
type answer struct {
	Status    command.Status
	Out, Said string
}

// plugin runs `kubectl holdfast` as the tenant, into a pipe.
func (x *tenant) plugin(args ...string) answer { return x.pluginWith(x.t.Context(), "", args...) }

// pluginWith does so until ctx ends, with what is typed in.
func (x *tenant) pluginWith(ctx context.Context, in string, args ...string) answer {
	x.t.Helper()
	var out, said bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(in), Out: &out, ErrOut: &said}
	ctx, cancel := context.WithTimeout(ctx, pluginLimit)
	defer cancel()
	as := []string{"--kubeconfig=" + stack.Kubeconfig(plugged), "--namespace=" + x.namespace, "--cache-dir=" + x.t.TempDir()}
	status := command.Run(ctx, streams, slices.Concat(args[:1], as, args[1:]))
	x.t.Logf("kubectl holdfast %s: %d\n%s%s", strings.Join(args, " "), status, out.String(), said.String())
	assert.False(x.t, strings.ContainsAny(out.String()+said.String(), "\x1b\r"), "nothing steers a terminal that is none")
	x.checkTakenUpOnce()
	return answer{status, out.String(), said.String()}
}

// A tenant takes a backup, restores and deletes it with the plugin, and each command ends with what has come of it.
func TestKubectlHoldfast(t *testing.T) {
	t.Parallel()
	repeated(t, plugged, (*tenant).usesThePlugin)
}

func (x *tenant) usesThePlugin() {
	t := x.t
	took := x.plugin("backup", "create", "nightly", "--wait", "--snapshot-volumes=false", "-l", "app=seed")
	require.Equal(t, command.StatusGood, took.Status)
	assert.Contains(t, took.Out, "nonadminbackup.oadp.openshift.io/nightly created\nbackup nightly Completed, ")
	assert.Contains(t, took.Out, " items")

	again := x.plugin("backup", "create", "nightly")
	assert.Equal(t, command.StatusError, again.Status)
	assert.Contains(t, again.Said, "has one of that name already; choose another")

	refused := x.plugin("backup", "create", "elsewhere", "--storage-location", "none", "--wait")
	assert.Equal(t, command.StatusBad, refused.Status)
	assert.Contains(t, refused.Said, "backup elsewhere InvalidBackupSpec: NonAdminBackupStorageLocation not found in the namespace")
	assert.Contains(t, refused.Said, "\nmore: kubectl describe nonadminbackups.oadp.openshift.io elsewhere -n "+x.namespace)

	x.seesBackups()
	x.restoresByPlugin()
	log := x.plugin("backup", "logs", "nightly")
	assert.Equal(t, command.StatusBad, log.Status, "it is in the administrator's location")
	assert.Contains(t, log.Said, "it must be in a NonAdminBackupStorageLocation of namespace "+x.namespace)

	kept := x.plugin("backup", "delete", "nightly")
	assert.Equal(t, command.StatusError, kept.Status)
	assert.Contains(t, kept.Said, "nothing was deleted: not confirmed")
	assert.Equal(t, command.StatusGood, x.pluginWith(t.Context(), "y\n", "backup", "delete", "elsewhere").Status)
	deleted := x.plugin("backup", "delete", "nightly", "--confirm", "--wait")
	assert.Equal(t, command.StatusGood, deleted.Status)
	assert.Equal(t, "nonadminbackup.oadp.openshift.io/nightly deletion requested\nnonadminbackup.oadp.openshift.io/nightly deleted\n",
		deleted.Out)
	assert.False(t, x.there("nightly"))
}

// seesBackups: get does what kubectl's does, with its flags; the shell completes what there is.
func (x *tenant) seesBackups() {
	t := x.t
	table := x.plugin("backup", "get")
	assert.Equal(t, command.StatusGood, table.Status)
	assert.Regexp(t, `(?m)^NAME +REQUEST-PHASE +VELERO-PHASE +QUEUE-POSITION +AGE$`, table.Out)
	assert.Regexp(t, `(?m)^nightly +Created +Completed `, table.Out)
	var one oadpv1alpha1.NonAdminBackup
	require.NoError(t, yaml.Unmarshal([]byte(x.plugin("backup", "get", "nightly", "-o", "yaml").Out), &one))
	assert.Equal(t, "NonAdminBackup", one.Kind)
	assert.Equal(t, map[string]string{"app": "seed"}, one.Spec.BackupSpec.LabelSelector.MatchLabels)
	assert.Equal(t, "nonadminbackup.oadp.openshift.io/nightly\n", x.plugin("backup", "get", "nightly", "-o", "name").Out)
	none := x.plugin("backup", "get", "none")
	assert.Equal(t, command.StatusError, none.Status)
	assert.Contains(t, none.Said, `nonadminbackups.oadp.openshift.io "none" not found`)
	all := x.plugin("backup", "get", "-A")
	assert.Equal(t, command.StatusError, all.Status, "a tenant has its own namespace")
	assert.Contains(t, all.Said, "forbidden")
	empty := x.plugin("restore", "get")
	assert.Equal(t, answer{Said: "No restores found in namespace " + x.namespace + ".\n"}, empty)
	completed := x.plugin("__complete", "backup", "wait", "")
	assert.Equal(t, "elsewhere\nnightly\n:4\n", completed.Out)

	planned := x.plugin("backup", "create", "planned", "--dry-run=client", "-o", "yaml", "--ttl", "24h")
	assert.Equal(t, fmt.Sprintf(`apiVersion: oadp.openshift.io/v1alpha1
kind: NonAdminBackup
metadata:
  name: planned
  namespace: %s
spec:
  backupSpec:
    ttl: 24h0m0s
`, x.namespace), planned.Out)
	assert.False(t, x.there("planned"))
}

// restoresByPlugin restores what was lost, and reads what has come of it.
func (x *tenant) restoresByPlugin() {
	t := x.t
	seeds := &corev1.ConfigMapList{}
	labels := client.MatchingLabels{"app": "seed"}
	require.NoError(t, x.client.List(t.Context(), seeds, client.InNamespace(x.namespace), labels))
	require.NotEmpty(t, seeds.Items)
	lost := &seeds.Items[0]
	require.NoError(t, x.client.Delete(t.Context(), lost.DeepCopy()))
	restored := x.plugin("restore", "create", "undo", "--from-backup", "nightly", "--include-resources", "configmaps", "--wait")
	require.Equal(t, command.StatusGood, restored.Status)
	assert.Contains(t, restored.Out, "restore undo Completed")
	now := &corev1.ConfigMap{}
	require.NoError(t, x.client.Get(t.Context(), client.ObjectKeyFromObject(lost), now))
	assert.Equal(t, lost.Data, now.Data)
	assert.Equal(t, command.StatusGood, x.plugin("restore", "wait", "undo").Status)
	assert.Equal(t, command.StatusError, x.plugin("restore", "wait", "none").Status)
}

// A plan's run is requested and followed, and the plan is paused and resumed.
func TestKubectlHoldfastRunsAPlan(t *testing.T) {
	t.Parallel()
	repeated(t, plugged, (*tenant).runsAPlan)
}

func (x *tenant) runsAPlan() {
	t := x.t
	plan := x.ready("nightly")
	made := x.plugin("plan", "run", "nightly", "--wait")
	require.Equal(t, command.StatusGood, made.Status)
	assert.Regexp(t, `backup nightly-\d{14} Completed`, made.Out)
	paused := func() bool {
		now := &backupPlan{}
		require.NoError(t, x.client.Get(t.Context(), client.ObjectKeyFromObject(plan), now))
		return now.Spec.Paused
	}
	assert.Equal(t, "backupplan.holdfast.dev/nightly paused\n", x.plugin("plan", "pause", "nightly").Out)
	assert.True(t, paused())
	assert.Equal(t, "backupplan.holdfast.dev/nightly resumed\n", x.plugin("plan", "resume", "nightly").Out)
	assert.False(t, paused())
	x.awaitPlan(plan, "shows its good backup", func(now *backupPlan) bool { return now.Status.LastGood != nil })
	back := x.plugin("restore", "create", "--from-plan", "nightly", "--wait")
	assert.Equal(t, command.StatusGood, back.Status)
	assert.Regexp(t, `^nonadminrestore.oadp.openshift.io/nightly-\d{14}-\w{5} created\n`, back.Out)
	assert.Equal(t, command.StatusError, x.plugin("plan", "run", "none").Status)
}

// The log of a backup in the tenant's own location is printed, and nothing is left of the request.
func TestKubectlHoldfastPrintsALog(t *testing.T) {
	t.Parallel()
	x, account := newTenant(t, plugged), newAccount(t)
	x.awaitAvailable(x.own(account))
	x.completedInto("nightly", "own")
	log := x.plugin("backup", "logs", "nightly")
	assert.Equal(t, command.StatusGood, log.Status)
	assert.Contains(t, log.Out, "Backed up a total of ")
	results := x.plugin("backup", "logs", "nightly", "--file", "results")
	assert.Contains(t, results.Out, "{")
	assert.Equal(t, command.StatusGood, results.Status)
	for _, printed := range []answer{log, results} { // the URL opens the file to anyone
		assert.NotContains(t, printed.Out+printed.Said, "X-Amz-")
		assert.NotContains(t, printed.Said, "://")
	}
	requests := &oadpv1alpha1.NonAdminDownloadRequestList{}
	require.NoError(t, x.client.List(t.Context(), requests, client.InNamespace(x.namespace)))
	for _, request := range requests.Items {
		assert.NotNil(t, request.DeletionTimestamp, request.Name)
	}
}

// A command that is left, by Ctrl-C or after its time, harms nothing, and another follows the same backup. Not parallel: Velero
// is paused.
func TestKubectlHoldfastIsLeft(t *testing.T) {
	repeated(t, plugged, (*tenant).leavesThePlugin)
}

func (x *tenant) leavesThePlugin() {
	t := x.t
	resume := pauseVelero(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	go func() {
		defer interrupt()
		key := types.NamespacedName{Namespace: x.namespace, Name: "nightly"}
		for ctx.Err() == nil && admin.Get(ctx, key, &oadpv1alpha1.NonAdminBackup{}) != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}()
	left := x.pluginWith(ctx, "", "backup", "create", "nightly", "--wait", "--snapshot-volumes=false")
	assert.Equal(t, command.StatusInterrupted, left.Status)
	assert.True(t, x.there("nightly"))

	impatient := x.plugin("backup", "wait", "nightly", "--timeout", "1s")
	assert.Equal(t, command.StatusTimeout, impatient.Status)
	assert.Contains(t, impatient.Said, "goes on in the cluster; follow it with: kubectl holdfast backup wait nightly -n "+x.namespace)

	resume()
	assert.Equal(t, command.StatusGood, x.plugin("backup", "wait", "nightly").Status)
}
