package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// catchUp is how soon after the API server's return a status must be right.
const catchUp = 15 * time.Second

// outage is a way in which the API server goes away and comes back.
type outage struct {
	down func(*testing.T)
	up   func(*testing.T)
	// ends says that its connections end, and that a process which starts meanwhile reaches nothing.
	ends bool
}

func outagesOf(api *env.Process) map[string]outage {
	return map[string]outage{
		"paused": {
			down: func(t *testing.T) { t.Helper(); require.NoError(t, api.Pause()) },
			up:   func(t *testing.T) { t.Helper(); require.NoError(t, api.Resume()) },
		},
		"stopped": {
			down: func(t *testing.T) { t.Helper(); require.NoError(t, api.Stop()) },
			up:   func(t *testing.T) { t.Helper(); require.NoError(t, api.Restart(t.Context())) },
			ends: true,
		},
	}
}

// The API server goes away with everything in it whose status it must take: a backup and a restore whose end Holdfast has not
// seen, a backup that Velero is at, and processes that start meanwhile. All is right within 15 seconds of its return, however
// long that takes and however it went away: `make test-long` runs the longer ones, and those in which it stands still, and looks
// at the seconds.
func TestOutageOfTheAPIServer(t *testing.T) {
	for name, each := range outagesOf(stack.Component(env.KubeAPIServer)) {
		for i, lasting := range []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute} {
			t.Run(name+" for "+lasting.String(), func(t *testing.T) {
				sample.Case(t, i == 0 && each.ends) // test/outage has those that do not end, too
				each.survived(t, lasting)
			})
		}
	}
}

func (o outage) survived(t *testing.T, lasting time.Duration) {
	t.Helper()
	// Velero's own watches take minutes to come back; what runs next does not wait for them.
	t.Cleanup(func() { require.NoError(t, stack.Component(env.Velero).Restart(context.Background())) })
	var x *tenant
	var nab, behind *oadpv1alpha1.NonAdminBackup
	var nar *restoring
	repeated(t, "erin", func(with *tenant) {
		x = with
		nab, nar, behind = x.endedUnseen(x.completed("nightly"))
	})
	o.down(t)
	t.Cleanup(func() { o.back(t) })
	require.NoError(t, stack.Component(env.Worker).Resume())
	require.NoError(t, stack.Component(env.Watcher).Resume())
	const late = 5 * time.Second
	time.Sleep(lasting - late) // the outage itself
	var early <-chan error
	if o.ends {
		early = startEarly(t, lasting)
	}
	select {
	case err := <-early:
		t.Fatal("without an API server nobody is ready, and nobody ends:", err)
	case <-time.After(late): // its rest
	}
	o.up(t)
	back := time.Now()

	x.repeatsVelero(nab, back) // Completed, unless Velero, woken with an old cache, has begun it again and called it Failed
	t.Logf("Velero says %s", veleroBackup(t, nab.Status.VeleroBackup.Name).Status.Phase)
	x.awaitRestorePhase(nar, velerov1.RestorePhaseCompleted)
	checkTook(t, "all is right after the API server's return:", time.Since(back), catchUp)
	x.awaitFinalizedAs(nar, oadpv1alpha1.FinalizationPhaseCompleted)
	switch {
	case o.ends: // Velero may have lost what it was at
		for range 2 {
			select {
			case err := <-early:
				require.NoError(t, err)
			case <-time.After(patience):
				require.Fail(t, "a process that started during the outage is not ready after it")
			}
		}
	case lasting <= time.Minute: // after five, Velero has given up what it was at, which stays InProgress
		x.repeatsVelero(behind, back)
		awaitEnd(t, behind)
	}
	awaitEnd(t, nab)
	recordRestore(t, nar)
}

// back is for a test that has failed meanwhile.
func (o outage) back(t *testing.T) {
	t.Helper()
	if api := stack.Component(env.KubeAPIServer); o.ends && !api.Running() {
		require.NoError(t, api.Restart(context.Background()))
	} else if !o.ends {
		_ = api.Resume()
	}
}

// startEarly starts a worker and a watcher, and says of each when it is ready.
func startEarly(t *testing.T, outage time.Duration) <-chan error {
	t.Helper()
	ready := make(chan error, 2)
	for kind, start := range map[string]func(context.Context, string, ...string) (*env.Process, error){
		env.Worker: stack.StartWorker, env.Watcher: stack.StartWatcher,
	} {
		name := fmt.Sprintf("%s-early-%s", kind, outage)
		go func() {
			_, err := start(t.Context(), name)
			ready <- err
		}()
		t.Cleanup(func() {
			if process := stack.Component(name); process != nil {
				require.NoError(t, process.Stop())
			}
		})
	}
	return ready
}

// endedUnseen returns a backup and a restore that Velero has completed while worker and watcher stood still; they still do. Velero
// is at the backup behind them then: it makes those of one namespace one after the other.
func (x *tenant) endedUnseen(of *oadpv1alpha1.NonAdminBackup) (nab *oadpv1alpha1.NonAdminBackup, nar *restoring, behind *oadpv1alpha1.NonAdminBackup) {
	x.t.Helper()
	unseen(x.t, env.Worker, func() {
		nar = x.awaitRestoreCreated(x.restore("restored", of.Name))
		nab = x.created("terminal")
		behind = x.created("behind")
	}, func() {
		x.awaitCompletedByVelero(nab)
		awaitRestoredByVelero(x.t, nar)
		awaitObject(x.t, admin, &velerov1.Backup{ObjectMeta: inOADP(backupID(behind))}, patience, "begun",
			func(now *velerov1.Backup, there bool) bool { return there && now.Status.StartTimestamp != nil })
	})
	require.NoError(x.t, admin.Get(x.t.Context(), client.ObjectKeyFromObject(nab), nab))
	require.NoError(x.t, admin.Get(x.t.Context(), keyOf(nar), nar))
	require.NotEqual(x.t, velerov1.BackupPhaseCompleted, veleroPhase(nab), "Holdfast has not seen it")
	require.NotEqual(x.t, velerov1.RestorePhaseCompleted, restorePhase(nar), "Holdfast has not seen it")
	return nab, nar, behind
}

// unseen has things made while Velero stands still, and done by it while worker and watcher do; they still do. awaitDone waits
// for that; it may give up for another tenant's turn.
func unseen(t *testing.T, worker string, made, awaitDone func()) {
	t.Helper()
	resume := func() {
		for _, component := range []string{env.Velero, worker, env.Watcher} {
			_ = stack.Component(component).Resume()
		}
	}
	t.Cleanup(resume)
	done := false
	defer func() {
		if !done {
			resume()
		}
	}()
	require.NoError(t, stack.Component(env.Velero).Pause())
	made()
	require.NoError(t, stack.Component(worker).Pause())
	require.NoError(t, stack.Component(env.Watcher).Pause())
	require.NoError(t, stack.Component(env.Velero).Resume())
	awaitDone()
	done = true
}

// awaitRestoredByVelero waits until Velero itself calls a restore Completed.
func awaitRestoredByVelero(t *testing.T, nar *restoring) {
	t.Helper()
	awaitObject(t, admin, &velerov1.Restore{ObjectMeta: inOADP(restoreID(nar))}, patience, "Completed",
		func(now *velerov1.Restore, there bool) bool {
			return there && now.Status.Phase == velerov1.RestorePhaseCompleted
		})
}

// repeatsVelero: the status becomes that of the Velero Backup, within catchUp of the API server's return, or of Velero's own word
// if Velero comes to it later.
func (x *tenant) repeatsVelero(nab *oadpv1alpha1.NonAdminBackup, back time.Time) {
	x.t.Helper()
	var terminal time.Time
	x.await(nab, "the status repeats Velero's terminal phase", func(now *oadpv1alpha1.NonAdminBackup) bool {
		found := &velerov1.Backup{ObjectMeta: inOADP(backupID(now))}
		ctx, cancel := context.WithTimeout(context.Background(), answerTime)
		defer cancel()
		if admin.Get(ctx, client.ObjectKeyFromObject(found), found) != nil {
			return false // it may not answer everything at once
		}
		if terminal.IsZero() && found.Status.CompletionTimestamp != nil {
			terminal = time.Now()
		}
		return !terminal.IsZero() && veleroPhase(now) == found.Status.Phase
	})
	since := slices.MaxFunc([]time.Time{terminal, back}, time.Time.Compare)
	checkTook(x.t, "the status repeats Velero's", time.Since(since), catchUp)
}
