package e2e_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// catchUp is how soon after the API server's return the status must be right.
const catchUp = 15 * time.Second

// Velero has finished; the API server goes away before Holdfast has seen it. The status is right within 15 seconds of
// its return, however long that takes and however it went away. `make test-long` runs the longest too.
func TestOutageAroundTheTerminalPatch(t *testing.T) {
	api := stack.Component(env.KubeAPIServer)
	outages := map[string]struct {
		down, up func(context.Context) error
		lasting  []time.Duration
	}{
		"paused": {
			down:    func(context.Context) error { return api.Pause() },
			up:      func(context.Context) error { return api.Resume() },
			lasting: []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute},
		},
		"stopped": {
			down:    func(context.Context) error { return api.Stop() },
			up:      api.Restart,
			lasting: []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute},
		},
	}
	for name, outage := range outages {
		for i, lasting := range outage.lasting {
			t.Run(name+" for "+lasting.String(), func(t *testing.T) {
				if i > 1 && os.Getenv("HOLDFAST_TEST_LONG") == "" {
					t.Skip("make test-long runs it")
				}
				// Velero's own watches take minutes to come back; what runs next does not wait for them.
				t.Cleanup(func() { require.NoError(t, stack.Component(env.Velero).Restart(context.Background())) })
				x := newTenant(t, "erin")
				nab := x.finishedUnseen("terminal")
				require.NoError(t, outage.down(t.Context()))
				require.NoError(t, stack.Component(env.Worker).Resume())
				require.NoError(t, stack.Component(env.Watcher).Resume())
				time.Sleep(lasting) // the outage itself
				require.NoError(t, outage.up(t.Context()))
				back := time.Now()
				x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
				assert.Less(t, time.Since(back), catchUp)
				t.Logf("right %s after the API server's return", time.Since(back).Round(100*time.Millisecond))
				record(t, nab)
			})
		}
	}
}

// finishedUnseen returns a backup that Velero has completed while worker and watcher stood still; they still do.
func (x *tenant) finishedUnseen(name string) *oadpv1alpha1.NonAdminBackup {
	x.t.Helper()
	components := []string{env.Velero, env.Worker, env.Watcher}
	x.t.Cleanup(func() {
		for _, component := range components {
			_ = stack.Component(component).Resume()
		}
	})
	require.NoError(x.t, stack.Component(env.Velero).Pause())
	nab := x.await(x.backUp(name), "Created", func(now *oadpv1alpha1.NonAdminBackup) bool {
		return now.Status.Phase == oadpv1alpha1.NonAdminPhaseCreated
	})
	require.NoError(x.t, stack.Component(env.Worker).Pause())
	require.NoError(x.t, stack.Component(env.Watcher).Pause())
	require.NoError(x.t, stack.Component(env.Velero).Resume())
	require.Eventually(x.t, func() bool {
		made := veleroBackup(x.t, nab.Status.VeleroBackup.Name)
		return made != nil && made.Status.Phase == velerov1.BackupPhaseCompleted
	}, patience, 100*time.Millisecond)
	require.NoError(x.t, admin.Get(x.t.Context(), client.ObjectKeyFromObject(nab), nab))
	require.NotEqual(x.t, velerov1.BackupPhaseCompleted, veleroPhase(nab), "Holdfast has not seen it")
	return nab
}
