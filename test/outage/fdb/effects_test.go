package fdb_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/workflows/contract"
)

// effects is what a run leaves behind, with the names, times and versions of that run taken out. How often it was looked is not
// compared; what was done is.
type effects struct {
	// Object is the FoundationDBBackup: spec, annotations, finalizers and status; empty if it is gone.
	Object string
	// Deployment is the agents'.
	Deployment string
	// Database is what the database knows of backups, and how many ever ran.
	Database string
	// Commands are those that changed the database, in their order, with their arguments and exit codes.
	Commands []string
	// Containers are those in the store.
	Containers []string
	// Restore is the FoundationDBRestore's status, and Keys what is in the database.
	Restore string
	Keys    map[string]string
	// Owner is what the owner of the database knows of those that have a say.
	Owner string
	// Writes are those that the API server took from the worker, but for Events and patches of status.
	Writes []string
}

// What differs from run to run.
var (
	anyTime     = regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}[:-]\d{2}[:-]\d{2}(\.\d+)?Z`)
	anyUUID     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	anyVersion  = regexp.MustCompile(`("version"|"turn"|"restoredVersion"): \d+`)
	saidVersion = regexp.MustCompile(`\bversion \d+`)
	anyStamp    = regexp.MustCompile(`\d{4}/\d{2}/\d{2}\.\d{2}:\d{2}:\d{2}\+0000`)
	anyPod      = regexp.MustCompile(`-expiry-[0-9a-z]+`)
	// anyRange is what an expiration left: the tool moves cutoffs back to where a file begins, by more or less.
	anyRange = regexp.MustCompile(`"data older than [^"]*"`)
	anyHash  = regexp.MustCompile(`\b[0-9a-f]{32,64}\b`)
)

func (c *testCase) plain(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, c.namespace, "NAMESPACE"), c.database, "DATABASE")
	text = anyStamp.ReplaceAllString(anyUUID.ReplaceAllString(anyTime.ReplaceAllString(text, "TIME"), "UUID"), "TIME")
	text = anyPod.ReplaceAllString(anyRange.ReplaceAllString(text, `"RANGE"`), "-expiry-POD")
	text = saidVersion.ReplaceAllString(text, "version NUMBER")
	return anyHash.ReplaceAllString(anyVersion.ReplaceAllString(text, `$1: NUMBER`), "HASH")
}

// effects waits until nothing more is under way, ends the worker, and tells what is left.
func (c *testCase) effects(s scenario) effects {
	c.t.Helper()
	c.settle(s)
	e := effects{
		Object: c.object(), Deployment: c.deployment(), Database: c.databaseState(), Containers: c.containers(),
		Owner: c.owner(), Writes: c.writes(), Restore: c.restored(), Keys: c.keys(),
	}
	var killed []string
	e.Commands, killed = c.commands()
	c.checkStarts()
	c.checkEnd(killed)
	return e
}

// settle waits until the workflows have come to rest: the object's is in its state, the owner runs nothing, the backup neither
// has nor wants a slot, and of the workers' private folders there is one, without anything secret.
func (c *testCase) settle(s scenario) {
	c.t.Helper()
	status := enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	if s.ends {
		status = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	}
	c.awaitStatus(c.workflow(), status)
	if c.restore != nil {
		c.awaitStatus(c.restoreWorkflow(), enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	}
	c.await("no slot is held or wanted", c.slotless)
	c.await("the owner runs nothing", func() bool {
		state, err := c.ownerState()
		return err == nil && state.Running == nil && state.Waiting == 0
	})
	c.await("no turn of the queue runs, and no pod is left", c.turnless)
	c.await("one private folder, of the worker that runs, without secrets", func() bool {
		workers, others := c.folders()
		return len(workers) == 1 && len(others) == 0
	})
}

// checkEnd ends the worker: neither a tool nor anything in its temporary folder is left.
func (c *testCase) checkEnd(killed []string) {
	c.t.Helper()
	require.NoError(c.t, c.StopWorkers())
	workers, others := c.folders()
	assert.Empty(c.t, slices.Concat(workers, others), "left in the temporary folder")
	calls, err := c.sim.Calls(c.database)
	require.NoError(c.t, err)
	for _, call := range calls {
		assert.False(c.t, !call.Ended() && call.Tool == "fdbbackup" && runs(call.PID), "%v still runs", call.Args)
	}
	if len(killed) > 0 {
		c.t.Logf("killed amid: %v", killed)
	}
}

// checkStarts: whatever was started is in the status of the object, unless that is gone.
func (c *testCase) checkStarts() {
	c.t.Helper()
	object, err := c.read()
	require.NoError(c.t, err)
	if object == nil {
		return
	}
	starts, err := c.sim.CallsOf(c.database, "fdbbackup", "start")
	require.NoError(c.t, err)
	for _, call := range starts {
		if call.Tool != "fdbbackup" || call.Dry() {
			continue
		}
		url := call.Args[slices.Index(call.Args, "-d")+1]
		known := false
		for _, entry := range object.Status.Backups {
			known = known || entry.URL == url
		}
		assert.True(c.t, known, "%s was started and is lost", url)
	}
}

func (c *testCase) object() string {
	object, err := c.read()
	require.NoError(c.t, err)
	if object == nil {
		return ""
	}
	return c.plain(asJSON(map[string]any{
		"spec": object.Spec, "annotations": object.Annotations, "finalizers": object.Finalizers, "status": object.Status,
	}))
}

func (c *testCase) deployment() string {
	found := &appsv1.Deployment{}
	err := c.admin.Get(context.Background(), client.ObjectKey{Namespace: c.namespace, Name: name}, found)
	if client.IgnoreNotFound(err) == nil && err != nil {
		return ""
	}
	require.NoError(c.t, err)
	if !found.DeletionTimestamp.IsZero() || c.gone() {
		return "" // its owner is gone, and it goes too
	}
	return c.plain(asJSON(map[string]any{
		"labels": found.Labels, "annotations": found.Annotations, "owners": found.OwnerReferences, "spec": found.Spec,
		"ready": found.Status.ReadyReplicas,
	}))
}

func (c *testCase) databaseState() string {
	cluster, err := c.sim.State(c.database)
	require.NoError(c.t, err)
	text := fmt.Sprintf("paused: %t, locked: %q\n", cluster.Paused, cluster.LockUID)
	for _, b := range cluster.Backups {
		text += fmt.Sprintf("%s %s to %s, %q, every %d s\n", b.Tag, b.State, b.URL, b.Ranges, b.IntervalSeconds)
	}
	for _, first := range cluster.FirstSnapshots {
		text += fmt.Sprintf("first snapshot on %s, ended: %t\n", first.Tag, !first.End.IsZero())
	}
	return c.plain(text)
}

// changing are the commands that change the database.
var changing = []string{"start", "modify", "abort", "pause", "resume", "expire", "delete"}

// commands returns those that ended, and those that were killed.
func (c *testCase) commands() (ended, killed []string) {
	for _, call := range c.calls() {
		if call.Tool == "fdbcli" || len(call.Args) == 0 || !slices.Contains(changing, call.Args[0]) || call.Dry() ||
			slices.Contains(call.Args, "-n") { // a restore that only tries
			continue
		}
		if call.Ended() {
			ended = append(ended, fmt.Sprintf("%s exit %d", c.inWords(call), call.ExitCode))
		} else {
			killed = append(killed, c.inWords(call)+" exit 0")
		}
	}
	return ended, killed
}

// calls are the runs of tools for the case's database, and for its containers alone.
func (c *testCase) calls() []fdbsim.Call {
	calls, err := c.sim.Calls(c.database)
	require.NoError(c.t, err)
	all, err := c.sim.Calls("")
	require.NoError(c.t, err)
	for _, call := range all {
		if slices.ContainsFunc(call.Args, func(arg string) bool { return strings.Contains(arg, c.namespace) }) {
			calls = append(calls, call)
		}
	}
	slices.SortStableFunc(calls, func(a, b fdbsim.Call) int { return a.Begin.Compare(b.Begin) })
	return calls
}

func (c *testCase) inWords(call fdbsim.Call) string {
	args := slices.Clone(call.Args)
	for _, option := range []string{"-C", "--dest-cluster-file", "--orig-cluster-file", "-v"} {
		if at := slices.Index(args, option); at >= 0 {
			args = slices.Delete(args, at, at+2)
		}
	}
	return c.plain(restoreTag.ReplaceAllString(strings.Join(args, " "), "-t TAG"))
}

// container is a key's part that tells the container: everything up to the time of the start.
var container = regexp.MustCompile(`^data/(.*?` + anyTime.String() + `)/`)

func (c *testCase) containers() []string {
	objects, err := c.stack.Objects("data/" + c.namespace)
	require.NoError(c.t, err)
	var found []string
	for _, object := range objects {
		parts := container.FindStringSubmatch(object.Key)
		if parts != nil && !slices.Contains(found, parts[1]) {
			found = append(found, parts[1])
		}
	}
	for i := range found {
		found[i] = c.plain(found[i])
	}
	slices.Sort(found)
	return found
}

// turnless reports whether the queue of expirations runs nothing, and nothing of a turn is left.
func (c *testCase) turnless() bool {
	var pods corev1.PodList
	err := c.admin.List(context.Background(), &pods, client.InNamespace(c.namespace), client.HasLabels{fdbv1alpha1.LabelExpiry})
	if err != nil || len(pods.Items) > 0 {
		return false
	}
	var state contract.FDBExpiryQueueState
	err = c.query(contract.FDBExpiryQueueID(c.namespace), &state)
	var missing *serviceerror.NotFound
	return errors.As(err, &missing) || (err == nil && len(state.Turns) == 0)
}

// restoreTag is that of a restore, which has a part of its object's UID.
var restoreTag = regexp.MustCompile(`-t [a-z-]+-[0-9a-f]{8}\b`)

func (c *testCase) restored() string {
	present, err := c.readRestore()
	require.NoError(c.t, err)
	if present == nil {
		return ""
	}
	return c.plain(anyTag.ReplaceAllString(asJSON(present.Status), `"tag": "TAG"`))
}

var anyTag = regexp.MustCompile(`"tag": "[^"]*"`)

func (c *testCase) keys() map[string]string {
	keys, err := c.sim.Keys(c.database)
	require.NoError(c.t, err)
	return keys
}

func (c *testCase) ownerState() (contract.FDBClusterState, error) {
	var state contract.FDBClusterState
	err := c.query(contract.FDBClusterID(c.database), &state)
	return state, err
}

// slotless reports whether the throttle knows nothing of the case's backup.
func (c *testCase) slotless() bool {
	var state contract.FDBThrottleState
	if c.query(contract.FDBThrottleID(c.namespace), &state) != nil {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(state.Holders, state.Waiting), func(holder contract.FDBHolder) bool {
		return holder.WorkflowID == c.workflow()
	})
}

// query asks a workflow for its state; one that has ended answers too.
func (c *testCase) query(id string, state any) error {
	ctx, cancel := context.WithTimeout(context.Background(), callPatience)
	defer cancel()
	answer, err := c.temporal.QueryWorkflow(ctx, id, "", contract.QueryState)
	if err != nil {
		return err
	}
	return answer.Get(state)
}

func (c *testCase) owner() string {
	text := ""
	c.await("the owner tells who is there", func() bool {
		state, err := c.ownerState()
		text = ""
		for _, member := range state.Members {
			text += fmt.Sprintf("%s, paused: %t\n", member.Name, member.Paused)
		}
		return err == nil
	})
	return c.plain(text)
}

func (c *testCase) writes() []string {
	requests, err := c.stack.Audit()
	require.NoError(c.t, err)
	var writes []string
	for _, r := range env.Writes(requests) {
		if r.User == env.HoldfastFDB && r.Namespace == c.namespace && r.Resource != "events" && r.Subresource != "status" {
			writes = append(writes, c.plain(fmt.Sprintf("%s %s %s", r.Verb, r.Resource, r.Name)))
		}
	}
	slices.Sort(writes)
	return writes
}

// requireSame: the same has come of it as when nothing happens. A command that was killed with its worker is not in the journal
// as ended; whether it was done, the database shows.
func (c *testCase) requireSame(want, got effects) {
	c.t.Helper()
	got.Writes = outage.WithLastWords(want.Writes, got.Writes)
	_, killed := c.commands()
	for i, command := range want.Commands {
		if at := slices.Index(killed, command); at >= 0 && len(got.Commands) < len(want.Commands) {
			killed = slices.Delete(killed, at, at+1)
			got.Commands = slices.Insert(slices.Clone(got.Commands), min(i, len(got.Commands)), command)
		}
	}
	writes := got.Writes
	got.Writes = want.Writes
	if !assert.Equal(c.t, want, got) {
		c.explain()
		return
	}
	c.attempts.RequireWrites(c.t, want.Writes, writes)
}

func asJSON(value any) string {
	data, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		panic(err)
	}
	return string(data)
}
