package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/api/serviceerror"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/queue"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// written is a policy.
type written struct {
	policy.Policy
	err error
}

func (w written) Get(context.Context) (policy.Policy, error) { return w.Policy, w.err }
func (w written) Version() string                            { return "v1" }

func limited(queue policy.Queue) written {
	return written{Policy: policy.Policy{Own: policy.Own{Queue: queue}}}
}

// nab returns a NonAdminBackup that was created in that second.
func nab(namespace, name string, second int64, labels map[string]string) *oadpv1alpha1.NonAdminBackup {
	object := fake.NAB(name)
	object.Namespace, object.Labels, object.CreationTimestamp = namespace, labels, metav1.Unix(second, 0)
	object.UID = types.UID("uid-" + namespace + "-" + name)
	return object
}

func waiting(object *oadpv1alpha1.NonAdminBackup) *oadpv1alpha1.NonAdminBackup {
	lifecycle.ApplyVerdict(object, check.Verdict{Accepted: true, Reason: "BackupAccepted"}, nameOf(object), fake.OADPNamespace)
	lifecycle.ApplyWaiting(object)
	return object
}

// unknown has all who have a turn listed.
var unknown = map[contract.Pool]bool{contract.PoolBackups: true}

func nameOf(of client.Object) string {
	return owner.NACUUID(fake.Cluster, of.GetNamespace(), of.GetName(), string(of.GetUID()))
}

// made returns the Velero Backup of an object, under that name.
func made(of *oadpv1alpha1.NonAdminBackup, name string, phase velerov1.BackupPhase) *velerov1.Backup {
	object := velero.NewBackup(of, name, fake.OADPNamespace, velerov1.BackupSpec{})
	object.Status.Phase = phase
	object.UID = types.UID("uid-velero-" + of.Name)
	return object
}

func find(t *testing.T, wanted contract.TurnsWanted, objects ...client.Object) contract.PoolFound {
	t.Helper()
	finds := &queue.Activities{
		Client: fake.New(t, objects...).Client, Policy: limited(policy.Queue{MaxActive: 3}), OADPNamespace: fake.OADPNamespace,
		ClusterID: fake.Cluster,
	}
	found, err := finds.Find(t.Context(), wanted)
	require.NoError(t, err)
	assert.NotContains(t, found.Pools, contract.PoolRestores, "there is no limit")
	return found.Pools[contract.PoolBackups]
}

// shown returns "namespace/name@lane".
func shown(members []contract.TurnMember) string {
	var names []string
	for _, member := range members {
		names = append(names, fmt.Sprintf("%s/%s@%d", member.Namespace, member.Name, member.Lane))
	}
	return strings.Join(names, " ")
}

func TestWhoWaitsAndWhoHasATurn(t *testing.T) {
	plan := map[string]string{holdfastv1alpha1.LabelPlan: "nightly"}
	defaults := map[string]string{holdfastv1alpha1.LabelPlan: "nightly", holdfastv1alpha1.LabelDefaultPlan: "true"}
	refused, synced, going := nab("a", "refused", 2, nil), nab("a", "synced", 2, owner.SyncedLabels("x")), nab("a", "going", 2, nil)
	lifecycle.ApplyVerdict(refused, check.Verdict{Reason: "InvalidBackupSpec"}, "", fake.OADPNamespace)
	going.Spec.DeleteBackup = true
	works, done, deleting := nab("a", "works", 1, nil), nab("a", "done", 1, nil), nab("a", "deleting", 1, nil)
	stalled := nab("a", "stalled", 1, nil)
	stalled.Status.Conditions = []metav1.Condition{{Type: string(oadpv1alpha1.NonAdminConditionVeleroStalled), Status: metav1.ConditionTrue}}
	late, gone := waiting(nab("b", "made-meanwhile", 1, nil)), nab("b", "gone", 1, nil)
	found := find(t, contract.TurnsWanted{Unknown: unknown},
		waiting(nab("b", "plan", 30, plan)), waiting(nab("a", "hand", 40, nil)), waiting(nab("a", "default", 20, defaults)),
		waiting(nab("a", "only-says-default", 25, map[string]string{holdfastv1alpha1.LabelDefaultPlan: "true"})),
		nab("c", "new", 50, nil), refused, synced, going, works, done, deleting, late,
		made(works, nameOf(works), velerov1.BackupPhaseInProgress), made(done, nameOf(done), velerov1.BackupPhasePartiallyFailed),
		made(deleting, nameOf(deleting), velerov1.BackupPhaseDeleting), made(late, nameOf(late), ""),
		made(gone, nameOf(gone), velerov1.BackupPhaseInProgress), // which a deleted object has left
		stalled, made(stalled, nameOf(stalled), velerov1.BackupPhaseInProgress),
	)
	assert.Equal(t, "a/only-says-default@0 a/hand@0 c/new@0 b/plan@1 a/default@2", shown(found.Waiting))
	var active []string
	for _, member := range found.Active {
		active = append(active, member.UID)
	}
	assert.ElementsMatch(t, []string{"uid-a-works", "uid-b-made-meanwhile", "of-uid-velero-gone"}, active)
}

// TestWhatIsMadeForAnotherDoesNotCount: a tenant can write into its bucket whose a Velero Backup is, and Velero brings that here; and an
// object of the same name may have been there before.
func TestWhatIsMadeForAnotherDoesNotCount(t *testing.T) {
	victim, before := waiting(nab("bank", "nightly", 10, nil)), nab("bank", "nightly", 5, nil)
	before.UID = "uid-before"
	for _, phase := range []velerov1.BackupPhase{velerov1.BackupPhaseCompleted, velerov1.BackupPhaseInProgress} {
		found := find(t, contract.TurnsWanted{Unknown: unknown}, victim, made(victim, "forged", phase))
		assert.Equal(t, "bank/nightly@0", shown(found.Waiting), phase)
		assert.Empty(t, found.Active, phase)
		found = find(t, contract.TurnsWanted{}, victim, made(victim, nameOf(before), phase))
		assert.Equal(t, "bank/nightly@0", shown(found.Waiting), phase)
	}
	own := made(before, "bank-forged", velerov1.BackupPhaseInProgress)
	own.Spec.StorageLocation = owner.NACUUID(fake.Cluster, "bank", "own", "uid-own")
	assert.Empty(t, find(t, contract.TurnsWanted{Unknown: unknown}, own).Active, "out of its own bucket")
	migrated := nab("bank", "nightly", 10, nil) // of the OADP non-admin controller, which named it so
	migrated.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{NACUUID: "bank-nightly-1", Namespace: fake.OADPNamespace}
	found := find(t, contract.TurnsWanted{Unknown: unknown}, migrated, made(migrated, "bank-nightly-1", velerov1.BackupPhaseInProgress))
	assert.Equal(t, "bank/nightly@0", shown(found.Active))
	assert.Empty(t, found.Waiting)
}

// TestWhoHasATurnOfThoseThatAreDoubted: also when the tenant has removed our finalizer, and its object is gone.
func TestWhoHasATurnOfThoseThatAreDoubted(t *testing.T) {
	works, done, gone, other := nab("a", "works", 1, nil), nab("a", "done", 1, nil), nab("a", "gone", 1, nil), nab("b", "other", 1, nil)
	key := func(of client.Object) contract.TurnKey {
		return contract.TurnKey{Pool: contract.PoolBackups, ObjectRef: contract.ObjectRef{
			Namespace: of.GetNamespace(), Name: of.GetName(), UID: string(of.GetUID()),
		}}
	}
	objects := []client.Object{
		works, done, other, made(works, nameOf(works), velerov1.BackupPhaseInProgress), made(gone, nameOf(gone), velerov1.BackupPhaseInProgress),
		made(done, nameOf(done), velerov1.BackupPhaseCompleted), made(other, nameOf(other), velerov1.BackupPhaseInProgress),
	}
	found := find(t, contract.TurnsWanted{Doubted: []contract.TurnKey{key(works), key(done), key(gone)}}, objects...)
	var active []string
	for _, member := range found.Active {
		active = append(active, member.UID)
	}
	assert.ElementsMatch(t, []string{string(works.UID), string(gone.UID)}, active)
	found = find(t, contract.TurnsWanted{Unknown: unknown}, objects...)
	held := contract.TurnsWanted{}
	for _, member := range found.Active {
		held.Doubted = append(held.Doubted, member.TurnKey)
	}
	assert.Len(t, held.Doubted, 3)
	assert.Len(t, find(t, held, objects...).Active, 3, "it is found again by the key that it has after a loss")
}

// TestOfVeryManyTheLastCount: Velero works in the order of creation, so that those before them end before.
func TestOfVeryManyTheLastCount(t *testing.T) {
	var objects []client.Object
	for n := range contract.MaxTurnsActive + 10 {
		of := nab("a", fmt.Sprintf("n%04d", n), 1, nil)
		velero := made(of, nameOf(of), velerov1.BackupPhaseNew)
		velero.CreationTimestamp = metav1.Unix(int64(1000+n), 0)
		objects = append(objects, of, velero)
	}
	active := find(t, contract.TurnsWanted{Unknown: unknown}, objects...).Active
	require.Len(t, active, contract.MaxTurnsActive)
	for _, member := range active {
		assert.GreaterOrEqual(t, member.Created, int64(1010))
	}
}

func TestTheFrontOfEachLaneAndWhoIsNamed(t *testing.T) {
	var objects []client.Object
	for n := range contract.MaxTurnsFound + 5 {
		objects = append(objects, waiting(nab("huge", fmt.Sprintf("h%04d", n), int64(n+10), nil)))
	}
	objects = append(objects, waiting(nab("late", "one", 99999, nil)), waiting(nab("late", "plan", 5, map[string]string{holdfastv1alpha1.LabelPlan: "p"})))
	last, other := fmt.Sprintf("h%04d", contract.MaxTurnsFound+4), fmt.Sprintf("h%04d", contract.MaxTurnsFound+3)
	found := find(t, contract.TurnsWanted{Named: []contract.TurnName{
		{Pool: contract.PoolBackups, Namespace: "huge", Name: last},
		{Pool: contract.PoolRestores, Namespace: "huge", Name: other},
		{Pool: contract.PoolBackups, Namespace: "huge", Name: "h0000"},
		{Pool: contract.PoolBackups, Namespace: "huge", Name: "nobody"},
	}}, objects...)
	require.Len(t, found.Waiting, contract.MaxTurnsFound+2)
	names := shown(found.Waiting)
	assert.Contains(t, names, "late/one@0", "one of each namespace comes first")
	assert.Contains(t, names, "huge/"+last+"@0", "an operator named it")
	assert.Equal(t, 1, strings.Count(names, "huge/h0000@"))
	assert.NotContains(t, names, "huge/"+other+"@", "another pool's")
	assert.Equal(t, contract.Beyond{Count: 5, Namespaces: []string{"huge"}}, found.Beyond[contract.LaneHand])
	assert.Zero(t, found.Beyond[contract.LanePlan])
}

func TestTheRulesAreThePolicys(t *testing.T) {
	labelled := func(name, tier string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": tier}}}
	}
	gold := policy.Weight{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}, Weight: 3}
	inBank, inShop := fake.NAR("waits", "nightly"), fake.NAR("waits", "nightly")
	inBank.Namespace, inShop.Namespace = "bank", "shop"
	finds := &queue.Activities{
		Client:        fake.New(t, inBank, inShop, labelled("bank", "gold"), labelled("shop", "iron"), labelled("idle", "gold")).Client,
		OADPNamespace: fake.OADPNamespace,
		Policy:        limited(policy.Queue{MaxActiveRestores: 2, Weights: []policy.Weight{gold}}),
	}
	found, err := run(t, finds)
	require.NoError(t, err)
	assert.Equal(t, contract.TurnRules{
		Version: "v1", Limits: map[contract.Pool]int{contract.PoolRestores: 2}, Weights: map[string]int{"bank": 3}, Timeout: 4 * 3600,
	}, found.Rules, "weights of those that wait")
	assert.Contains(t, found.Pools, contract.PoolRestores)
	assert.NotContains(t, found.Pools, contract.PoolBackups)
	short := queue.RulesOf(policy.Queue{TurnTimeout: metav1.Duration{Duration: time.Hour}})
	assert.Equal(t, contract.TurnRules{Limits: map[contract.Pool]int{}, Timeout: 3600}, short)
	finds.Policy = written{err: errors.New("away")}
	_, err = run(t, finds)
	require.ErrorContains(t, err, "read the admin's policy: away")
	finds.Paused = func() error { return errors.New("another controller serves them") }
	_, err = run(t, finds)
	require.ErrorContains(t, err, "another controller serves them")
}

// run runs Find under its wire name, as a worker does.
func run(t *testing.T, finds *queue.Activities) (found contract.TurnsFound, err error) {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	if finds.Paused == nil {
		finds.Paused = func() error { return nil }
	}
	finds.Register(env)
	answer, err := env.ExecuteActivity(contract.FindTurns.Name, contract.TurnsWanted{})
	if err == nil {
		err = answer.Get(&found)
	}
	return found, err
}

// signals is Temporal: it notes signals, and answers with an error by workflow IDs.
type signals struct {
	temporalclient.Client
	mutex sync.Mutex
	sent  map[string]any
	errs  map[string]error
}

func (s *signals) SignalWithStartWorkflow(
	_ context.Context, id, name string, payload any, options temporalclient.StartWorkflowOptions, _ any, _ ...any,
) (temporalclient.WorkflowRun, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.sent[id+" "+name] = payload
	return nil, s.errs[options.ID]
}

func (s *signals) SignalWorkflow(_ context.Context, id, _, name string, payload any) error {
	s.sent[id+" "+name] = payload
	return s.errs[id]
}

func TestTurnsAreGivenAndReturned(t *testing.T) {
	key := func(pool contract.Pool, name string) contract.TurnKey {
		return contract.TurnKey{Pool: pool, ObjectRef: contract.ObjectRef{Namespace: "team", Name: name, UID: "u-" + name}}
	}
	id := func(key contract.TurnKey) string { return contract.WorkflowID("west", key.Pool.Kind(), key.ObjectRef) }
	a, b, c := key(contract.PoolBackups, "a"), key(contract.PoolRestores, "b"), key(contract.PoolBackups, "c")
	s := &signals{sent: map[string]any{}, errs: map[string]error{id(c): serviceerror.NewInvalidArgument("too long")}}
	gives := &queue.Activities{Temporal: s}
	given := contract.TurnsGiven{Cluster: "west", Given: 70, Turns: []contract.GivenTurn{
		{TurnKey: a, Turn: 5}, {TurnKey: b, Turn: 6}, {TurnKey: c, Turn: 7},
	}}
	refused, err := gives.Give(t.Context(), given)
	require.NoError(t, err, "what Temporal will never accept is not tried again")
	assert.Equal(t, []contract.TurnKey{c}, refused.Keys)
	assert.Equal(t, contract.VeleroChanged{Changed: contract.Changed{Reason: "turn"}, Turn: contract.Turn{Number: 5, Given: 70}}, s.sent[id(a)+" "+contract.SignalChanged])
	assert.Equal(t, contract.VeleroChanged{Changed: contract.Changed{Reason: "turn"}, Turn: contract.Turn{Number: 6, Given: 70}}, s.sent[id(b)+" "+contract.SignalChanged])
	s.errs[id(b)] = errors.New("away")
	_, err = gives.Give(t.Context(), given)
	require.ErrorContains(t, err, "away", "it is tried again")

	queueID := contract.VeleroQueueID("west")
	back := contract.TurnReturn{Cluster: "west", TurnKey: a, Turn: 5, Waits: true}
	require.NoError(t, gives.Return(t.Context(), back))
	assert.Equal(t, back, s.sent[queueID+" "+contract.SignalTurnReturned])
	s.errs[queueID] = serviceerror.NewNotFound("it does not run")
	require.NoError(t, gives.Return(t.Context(), back), "it has no turns")
	s.errs[queueID] = errors.New("away")
	require.ErrorContains(t, gives.Return(t.Context(), back), "away")
}

// The turn of an object that is gone, its finalizer removed by hand, lasts as long as Velero works on what was made for it.
func TestATurnThatVeleroUsesIsNotReturned(t *testing.T) {
	object := nab("team", "nightly", 1, nil)
	other := nab("team", "nightly", 2, nil)
	other.UID = "uid-of-the-next"
	for title, test := range map[string]struct {
		objects  []client.Object
		returned bool
	}{
		"Velero works on it": {objects: []client.Object{made(object, nameOf(object), velerov1.BackupPhaseInProgress)}},
		"Velero works on it, and there is another of its name": {objects: []client.Object{
			other, made(object, nameOf(object), velerov1.BackupPhaseInProgress),
		}},
		"the object is there": {objects: []client.Object{object, made(object, nameOf(object), velerov1.BackupPhaseInProgress)}, returned: true},
		"Velero has finished": {objects: []client.Object{made(object, nameOf(object), velerov1.BackupPhaseCompleted)}, returned: true},
		"nothing is left":     {returned: true},
	} {
		t.Run(title, func(t *testing.T) {
			s := &signals{sent: map[string]any{}, errs: map[string]error{}}
			returns := &queue.Activities{
				Temporal: s, Client: fake.New(t, test.objects...).Client, OADPNamespace: fake.OADPNamespace, ClusterID: fake.Cluster,
			}
			require.NoError(t, returns.Return(t.Context(), contract.TurnReturn{Cluster: fake.Cluster, Turn: 5, TurnKey: contract.TurnKey{
				Pool:      contract.PoolBackups,
				ObjectRef: contract.ObjectRef{Namespace: "team", Name: "nightly", UID: string(object.UID)},
			}}))
			assert.Equal(t, test.returned, len(s.sent) == 1)
		})
	}
}
