package velero

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/k8s/policy"
)

const start = "start nab team/nightly uid-nightly"

func TestALookSignalsOnlyWhatIsNotSettled(t *testing.T) {
	later := reconcile.Result{RequeueAfter: 5 * time.Minute}
	force := request(name)
	force.Force = true
	other := request(name)
	other.UID = "uid-of-the-one-before"
	completed, completedBackup := tracked(name, "Completed")
	running, runningBackup := tracked(name, "InProgress")
	lost, _ := tracked(name, "InProgress")
	tests := map[string]struct {
		there   []client.Object
		request Request
		paused  error
		want    []string
		result  reconcile.Result
	}{
		"new":                                  {there: []client.Object{fake.NAB(name)}, request: request(name), want: []string{start}, result: later},
		"at work":                              {there: []client.Object{running, runningBackup}, request: request(name), want: []string{start}, result: later},
		"its Velero Backup lost":               {there: []client.Object{lost}, request: request(name), want: []string{start}, result: later},
		"settled":                              {there: []client.Object{completed, completedBackup}, request: request(name), result: later},
		"kept back, the cause still there":     {there: []client.Object{keptBack(name)}, request: request(name), result: later},
		"gone":                                 {request: request(name), want: []string{"deleted nab team/nightly uid-nightly"}},
		"recreated":                            {there: []client.Object{fake.NAB(name)}, request: other, want: []string{"deleted nab team/nightly uid-of-the-one-before"}},
		"not settled by a live look":           {there: []client.Object{completed, completedBackup}, request: force, want: []string{start}},
		"not in the cache, but in a live look": {request: force, want: []string{start}},
		"another controller serves it":         {there: []client.Object{fake.NAB(name)}, request: request(name), paused: errAway, result: reconcile.Result{RequeueAfter: 10 * time.Second}},
		"gone, and another controller there":   {request: request(name), paused: errAway, result: reconcile.Result{RequeueAfter: 10 * time.Second}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := newStation(t, test.there...)
			s.paused = test.paused
			result, err := s.backups.Reconcile(t.Context(), test.request)
			require.NoError(t, err)
			assert.Equal(t, test.want, s.signals.Sent)
			assert.Equal(t, test.result, result)
		})
	}
}

// The workqueue tries again, for ever and ever more slowly, whatever an error says.
func TestALookThatFailsIsRepeated(t *testing.T) {
	tests := map[string]func(s *station){
		"Temporal is away":          func(s *station) { s.signals.Err = errAway },
		"the cache cannot be read":  func(s *station) { s.cache.FailReads(func(runtime.Object) error { return errAway }) },
		"the policy cannot be used": func(s *station) { s.policy.Write("", policy.Policy{}, errAway) },
	}
	for title, disturb := range tests {
		t.Run(title, func(t *testing.T) {
			waits, _ := tracked(name, "") // its Velero Backup is lost
			if title == "the policy cannot be used" {
				waits = keptBack(name)
			}
			s := newStation(t, waits)
			disturb(s)
			result, err := s.backups.Reconcile(t.Context(), request(name))
			require.ErrorIs(t, err, errAway)
			assert.Zero(t, result, "a result beside an error would be ignored")
			assert.Empty(t, s.signals.Sent)
		})
	}
	t.Run("Temporal is away when an object has gone", func(t *testing.T) {
		s := newStation(t)
		s.signals.Err = errAway
		_, err := s.backups.Reconcile(t.Context(), request(name))
		require.ErrorIs(t, err, errAway)
	})
}
