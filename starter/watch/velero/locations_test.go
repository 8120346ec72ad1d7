package velero

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	startLocation  = "start nabsl team/nightly uid-nightly"
	goneLocation   = "deleted nabsl team/nightly uid-nightly"
	startApproval  = "start approval team/nightly uid-nightly"
	ensureApproval = "ensure approval team/nightly uid-nightly"
	signalApproval = "changed approval team/nightly uid-nightly"
)

// carryOut has a worker do what a location needs, in a world of its own.
func carryOut(t *testing.T, world *fake.World, approval bool) {
	t.Helper()
	world.RequireApproval(approval)
	step := contract.ObjectStep{Ref: fake.Ref(name)}
	for range 2 {
		for _, activity := range []string{
			contract.AdmitLocation.Name, contract.SyncLocation.Name, contract.RefreshLocation.Name,
			contract.AdvanceApproval.Name, contract.AdvanceApproval.Name, contract.AdvanceApproval.Name,
		} {
			_, err := activitytest.Performed[any](t, world.Locations, activity, step)
			require.NoError(t, err)
		}
	}
}

// located returns a station that knows a location, its Secret and all that was made of it.
func located(t *testing.T, approval bool) *station {
	t.Helper()
	s := newStation(t, fake.NaBSL(name), fake.Secret(fake.SecretName, fake.Credentials("x")))
	s.policy.Write("1", policy.Policy{RequireApprovalForBSL: ptr.To(approval)}, nil)
	carryOut(t, s.cache, approval)
	return s
}

func TestALookAtALocationSignalsWhatIsNotSettled(t *testing.T) {
	later := reconcile.Result{RequeueAfter: 5 * time.Minute}
	decided := func(decision oadpv1alpha1.ApprovalDecision) func(*station) {
		return func(s *station) {
			s.cache.Decide(name, func(r *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest) {
				r.Spec.PendingApprovalDecision = decision
			})
		}
	}
	tests := map[string]struct {
		approval bool
		change   func(*station)
		force    bool
		paused   error
		want     []string
		result   reconcile.Result
	}{
		"settled": {result: later},
		"settled, its approval open": {
			approval: true, want: []string{ensureApproval}, result: later,
		},
		"edited": {
			change: func(s *station) { s.cache.EditLocation(name, func(spec *veleroLocationSpec) { spec.Provider = "gcp" }) },
			want:   []string{startLocation}, result: later,
		},
		"edited, with approval: both look": {
			approval: true,
			change: func(s *station) {
				s.cache.EditLocation(name, func(spec *veleroLocationSpec) { spec.ObjectStorage.Bucket = "other" })
			},
			want: []string{startApproval, startLocation}, result: later,
		},
		"decided": {approval: true, change: decided("approve"), want: []string{startApproval}, result: later},
		"decided about a spec that is invalid now: that is shown": {
			approval: true, change: func(s *station) {
				s.cache.EditLocation(name, func(spec *veleroLocationSpec) { spec.Provider = "" })
				carryOut(t, s.cache, true)
				decided("approve")(s)
			}, want: []string{startApproval}, result: later,
		},
		"decided and carried out in part": {
			approval: true, change: func(s *station) {
				decided("approve")(s)
				_, _ = activitytest.Performed[any](t, s.cache.Locations, contract.AdvanceApproval.Name, contract.ObjectStep{Ref: fake.Ref(name)})
			}, want: []string{ensureApproval, startLocation}, result: later,
		},
		"its Secret another one": {
			change: func(s *station) { s.cache.Rotate(fake.SecretName, fake.Credentials("y")) },
			want:   []string{startLocation}, result: later,
		},
		"its copy gone": {change: func(s *station) { s.cache.Remove(s.cache.Copy(name)) }, want: []string{startLocation}, result: later},
		"its Velero BackupStorageLocation gone": {
			change: func(s *station) { s.cache.Remove(s.cache.VeleroLocation(name)) }, want: []string{startLocation}, result: later,
		},
		"what Velero says is new": {
			change: func(s *station) { s.cache.Validate(name, "Available", "") }, want: []string{startLocation}, result: later,
		},
		"settled, but to be looked at by the worker": {force: true, want: []string{startLocation}},
		"being deleted": {
			change: func(s *station) { s.cache.Remove(s.cache.Location(name)) }, want: []string{startLocation}, result: later,
		},
		"being deleted, its approval not closed": {
			approval: true, change: func(s *station) { s.cache.Remove(s.cache.Location(name)) },
			want: []string{signalApproval, startLocation}, result: later,
		},
		"another controller serves it": {paused: errAway, result: reconcile.Result{RequeueAfter: 10 * time.Second}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			s := located(t, test.approval)
			s.paused = test.paused
			if test.change != nil {
				test.change(s)
			}
			asked := request(name)
			asked.Force = test.force
			result, err := s.locations.Reconcile(t.Context(), asked)
			require.NoError(t, err)
			assert.Equal(t, test.want, s.signals.Sent)
			assert.Equal(t, test.result, result)
		})
	}
}

// What is gone is told to workflows that run, and to an approval only if one was seen.
func TestALocationThatIsGoneStartsNothing(t *testing.T) {
	s := newStation(t)
	result, err := s.locations.Reconcile(t.Context(), request(name))
	require.NoError(t, err)
	assert.Equal(t, []string{goneLocation}, s.signals.Sent)
	assert.Zero(t, result)

	s = located(t, true)
	_, err = s.locations.Reconcile(t.Context(), request(name))
	require.NoError(t, err)
	vanish(t, s)
	s.signals.Sent = nil
	_, err = s.locations.Reconcile(t.Context(), request(name))
	require.NoError(t, err)
	assert.Equal(t, []string{signalApproval, startLocation}, s.signals.Sent, "something is left to delete")
	s.cache.Remove(s.cache.ApprovalRequest(name))
	s.signals.Sent = nil
	_, err = s.locations.Reconcile(t.Context(), request(name))
	require.NoError(t, err)
	assert.Equal(t, []string{goneLocation}, s.signals.Sent, "it closed")

	s = located(t, true)
	vanish(t, s)
	_, err = s.locations.Reconcile(t.Context(), request(name))
	require.NoError(t, err)
	assert.Equal(t, []string{signalApproval, startLocation}, s.signals.Sent, "it went while no watcher ran")
}

func vanish(t *testing.T, s *station) {
	t.Helper()
	object := s.cache.Location(name)
	object.Finalizers = nil
	require.NoError(t, s.cache.Client.Update(t.Context(), object))
	s.cache.Remove(object)
}

func TestASwitchedOffApprovalIsToldOnce(t *testing.T) {
	s := located(t, true)
	_, err := s.locations.Reconcile(t.Context(), request(name))
	require.NoError(t, err)
	s.policy.Write("2", policy.Policy{}, nil)
	s.locations.PolicyWritten(t.Context(), true)
	asked := s.locations.Requested()
	require.Equal(t, []Request{request(name)}, asked, "a change of the policy concerns every location")
	s.signals.Sent = nil
	_, err = s.locations.Reconcile(t.Context(), asked[0])
	require.NoError(t, err)
	assert.Equal(t, []string{signalApproval, startLocation}, s.signals.Sent)
}

func TestALookAtALocationThatFailsIsRepeated(t *testing.T) {
	for title, disturb := range map[string]func(*station){
		"Temporal is away":         func(s *station) { s.signals.Err = errAway },
		"the cache cannot be read": func(s *station) { s.cache.FailReads(func(runtime.Object) error { return errAway }) },
	} {
		t.Run(title, func(t *testing.T) {
			s := newStation(t, fake.NaBSL(name))
			disturb(s)
			result, err := s.locations.Reconcile(t.Context(), request(name))
			require.ErrorIs(t, err, errAway)
			assert.Zero(t, result)
			assert.Empty(t, s.signals.Sent)
		})
	}
}

// Every look at a location of which the cache keeps little is its workflows' to judge, those without an event too: a workflow that
// somebody terminated is started again.
func TestALocationThatIsNotKeptIsToldOfEveryEvent(t *testing.T) {
	for title, test := range map[string]struct {
		approval bool
		size     int
		want     []string
	}{
		"without approval": {size: 900_000, want: []string{startLocation}},
		"with approval":    {approval: true, size: 40_000, want: []string{startApproval, startLocation}},
		"with approval, its request not kept, either": {approval: true, size: 64_900, want: []string{startApproval, startLocation}},
	} {
		t.Run(title, func(t *testing.T) {
			object := fake.NaBSL(name)
			object.Spec.BackupStorageLocationSpec.Config = map[string]string{"region": strings.Repeat("x", test.size)}
			known := []client.Object{object, fake.Secret(fake.SecretName, fake.Credentials("x"))}
			if test.approval {
				known = approvedAndEdited(t, test.size, known...)
			}
			for i := range known {
				known[i] = inCache(t, known[i])
			}
			s := newStation(t, known...)
			s.policy.Write("1", policy.Policy{RequireApprovalForBSL: &test.approval}, nil)
			for range 2 { // an event, and a resync
				s.signals.Sent = nil
				result, err := s.locations.Reconcile(t.Context(), controllers.RequestFor(object))
				require.NoError(t, err)
				assert.Equal(t, reconcile.Result{RequeueAfter: 5 * time.Minute}, result)
				assert.Equal(t, test.want, s.signals.Sent)
			}
		})
	}
}

// approvedAndEdited returns what is there of a location that was approved, and then given another spec of that size.
func approvedAndEdited(t *testing.T, size int, objects ...client.Object) []client.Object {
	t.Helper()
	s := newStation(t, objects...)
	carryOut(t, s.cache, true)
	s.cache.Decide(name, func(r *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest) {
		r.Spec.PendingApprovalDecision = "approve"
	})
	carryOut(t, s.cache, true)
	s.cache.EditLocation(name, func(spec *veleroLocationSpec) {
		spec.Config = map[string]string{"region": strings.Repeat("y", size)}
	})
	return []client.Object{
		s.cache.Location(name), s.cache.ApprovalRequest(name), s.cache.Copy(name),
		fake.Secret(fake.SecretName, fake.Credentials("x")),
	}
}
