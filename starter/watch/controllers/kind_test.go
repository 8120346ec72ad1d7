package controllers

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

var errAway = errors.New("connection refused")

// told records what a workflow was told.
type told struct {
	connect.Workflows
	what    []string
	volumes bool
	err     error
}

func (w *told) note(what string) error {
	if w.err == nil {
		w.what = append(w.what, what)
	}
	return w.err
}

func (w *told) SignalWithStart(_ context.Context, _ contract.Kind, _ contract.ObjectRef, changed contract.Hint) error {
	velero, _ := changed.(contract.VeleroChanged)
	w.volumes = velero.Volumes
	return w.note("start")
}

func (w *told) Ensure(context.Context, contract.Kind, contract.ObjectRef) error {
	return w.note("ensure")
}

func (w *told) SignalRunning(_ context.Context, _ contract.Kind, _ contract.ObjectRef, changed contract.Hint) error {
	return w.note(changed.Why())
}

// kindOf is a kind with one object, of which that view is made.
func kindOf(view *View) (*Kind[*corev1.ConfigMap], *told) {
	workflows := &told{}
	env := &Env{Workflows: workflows, ResyncInterval: 5 * time.Minute, Log: zap.NewNop(), Paused: func() error { return errAway }}
	kind := Kind[*corev1.ConfigMap]{Env: env, Reported: "ConfigMap"}
	if view != nil {
		kind.Judge = func(context.Context, client.Reader, contract.ObjectRef) (View, error) { return *view, nil }
	}
	return New(kind), workflows
}

func TestWhatALookTells(t *testing.T) {
	const resync = 5 * time.Minute
	first := func(_ context.Context, send Send, force bool) error {
		return send("Other", func(workflows connect.Workflows) error {
			if force {
				return workflows.(*told).note("other by force")
			}
			return workflows.(*told).note("other")
		})
	}
	tests := map[string]struct {
		view  View
		force bool
		want  []string
		again time.Duration
	}{
		"settled":                            {view: View{Found: true}, again: resync},
		"due":                                {view: View{Found: true, Due: true, Open: true}, want: []string{"start"}, again: resync},
		"open":                               {view: View{Found: true, Open: true}, want: []string{"ensure"}, again: resync},
		"gone":                               {want: []string{"deleted"}},
		"gone, and something left":           {view: View{Due: true}, want: []string{"start"}, again: resync},
		"settled, by force":                  {view: View{Found: true}, force: true, want: []string{"start"}},
		"open, by force":                     {view: View{Found: true, Open: true}, force: true, want: []string{"start"}},
		"gone, by force":                     {force: true, want: []string{"start"}},
		"ended, by force":                    {view: View{Ended: true}, force: true, want: []string{"deleted"}},
		"not kept whole":                     {view: View{Found: true, Partly: true}, want: []string{"start"}, again: resync},
		"again soon":                         {view: View{Found: true, Again: time.Minute}, again: time.Minute},
		"again, but not soon":                {view: View{Found: true, Again: time.Hour}, again: resync},
		"another first":                      {view: View{Found: true, Due: true, First: first}, want: []string{"other", "start"}, again: resync},
		"another first, of what is not kept": {view: View{Found: true, Partly: true, First: first}, want: []string{"other by force", "start"}, again: resync},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			kind, workflows := kindOf(&test.view)
			request := Request{Name: "nightly", Force: test.force}
			kind.Add(&recordingQueue{}, request)
			result, err := kind.Reconcile(t.Context(), request)
			require.NoError(t, err)
			assert.Equal(t, test.want, workflows.what)
			assert.Equal(t, reconcile.Result{RequeueAfter: test.again}, result)
			assert.Empty(t, kind.arrivals.first, "thousands of settled objects at a start leave nothing behind")

			workflows.err = errAway
			kind.Add(&recordingQueue{}, request)
			result, err = kind.Reconcile(t.Context(), request)
			if test.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, errAway)
			assert.Zero(t, result, "a result beside an error would be ignored")
			assert.Len(t, kind.arrivals.first, 1, "the event still waits for its signal")
		})
	}
}

func TestAKindThatAnotherControllerServesIsLeftAlone(t *testing.T) {
	kind, workflows := kindOf(&View{Found: true, Due: true})
	kind.Shared = true
	result, err := kind.Reconcile(t.Context(), Request{Name: "nightly"})
	require.NoError(t, err)
	assert.Equal(t, reconcile.Result{RequeueAfter: pausedInterval}, result)
	assert.Empty(t, workflows.what)
}

func TestAWorkflowThatSomebodyElseStartsIsToldWhileItRuns(t *testing.T) {
	kind, workflows := kindOf(nil)
	result, err := kind.Reconcile(t.Context(), Request{Name: "nightly"})
	require.NoError(t, err)
	assert.Zero(t, result)
	assert.Equal(t, []string{"changed"}, workflows.what)
}

// Volumes that come to light when all is settled are counted, once, however often the signal fails.
func TestUncountedVolumesAreSignalled(t *testing.T) {
	view := View{Found: true, VeleroName: "nightly-1", Uncounted: true}
	kind, workflows := kindOf(&view)
	kind.Volumes.Add("nightly-1")
	workflows.err = errAway
	_, err := kind.Reconcile(t.Context(), Request{Name: "nightly"})
	require.ErrorIs(t, err, errAway)
	workflows.err = nil
	for range 3 {
		_, err := kind.Reconcile(t.Context(), Request{Name: "nightly"})
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"start"}, workflows.what)
	assert.True(t, workflows.volumes)
}

func TestWhatWaitedIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind, workflows := kindOf(&View{Found: true, Due: true, Unstarted: true})
		kind.starts = full(t)
		go func() { assert.NoError(t, kind.handOver(t.Context())) }()
		request := Request{Name: "nightly"}
		result, err := kind.Reconcile(t.Context(), request)
		require.NoError(t, err)
		assert.Zero(t, result, "it comes again when its turn has come")
		assert.Empty(t, workflows.what)
		kind.starts.started(of("first", 1), true)
		synctest.Wait()
		require.Equal(t, []Request{request}, kind.Requested())
		_, err = kind.Reconcile(t.Context(), request)
		require.NoError(t, err)
		assert.Len(t, workflows.what, 1)
	})
}
