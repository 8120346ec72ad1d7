package queue

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/turns"
)

func keyIn(namespace, name string) contract.TurnKey {
	ref := contract.ObjectRef{Namespace: namespace, Name: name, UID: namespace + name}
	return contract.TurnKey{Pool: contract.PoolBackups, ObjectRef: ref}
}

// TestTheFullestQueueFitsIntoAPayload: all names are as long as Kubernetes allows, and every namespace has a weight.
func TestTheFullestQueueFitsIntoAPayload(t *testing.T) {
	const limit = 2 << 20 // Temporal's
	r := newQueueRun(contract.VeleroQueueInput{Cluster: "west"}, call.Options{})
	r.rules.Weights = map[string]int{}
	found := contract.TurnsFound{Rules: contract.TurnRules{Weights: r.rules.Weights}, Pools: map[contract.Pool]contract.PoolFound{}}
	number := 0
	member := func(of *pool, lane int) contract.TurnMember {
		number++
		namespace := fmt.Sprintf("%s%010d", strings.Repeat("n", 53), number)
		r.rules.Weights[namespace] = 1000
		ref := contract.ObjectRef{Namespace: namespace, Name: strings.Repeat("o", 253), UID: "00000000-0000-0000-0000-000000000000"}
		return contract.TurnMember{
			TurnKey: contract.TurnKey{Pool: of.name, ObjectRef: ref}, Lane: lane, Created: 1_800_000_000, Since: 1_800_000_000,
			First: true, Returned: 100, NotBefore: 1_800_000_000,
		}
	}
	for _, of := range r.pools {
		for _, lane := range of.name.Lanes() {
			for range contract.MaxTurnsCarried {
				of.Members = append(of.Members, memberOf(member(of, lane)))
			}
			of.Lanes = of.Settled()
			of.Lanes[lane].More = of.Lanes[lane].Namespaces
		}
		for range contract.MaxTurns {
			turn := turns.Turn[contract.TurnKey]{Member: memberOf(member(of, contract.LaneHand)), Began: 1_800_000_000, ClosedSince: 1_800_000_000}
			of.Hold(turn)
		}
		listed := contract.PoolFound{}
		for _, lane := range of.name.Lanes() {
			for range contract.MaxTurnsFound {
				listed.Waiting = append(listed.Waiting, member(of, lane))
			}
		}
		for range contract.MaxTurnsActive {
			listed.Active = append(listed.Active, member(of, contract.LaneHand))
		}
		found.Pools[of.name] = listed
	}
	for what, payload := range map[string]any{"carried": r.carry(1_800_000_000), "shown": r.state(1_800_000_000), "listed": found} {
		data, err := json.Marshal(payload)
		require.NoError(t, err)
		t.Logf("largest payload %s: %d bytes", what, len(data))
		assert.Less(t, len(data), limit, what)
	}
}

// TestWhoRestsDelaysNobodyBeyond: others of its namespace, which are not carried, may have their turns meanwhile.
func TestWhoRestsDelaysNobodyBeyond(t *testing.T) {
	p := newPool(contract.PoolBackups, contract.PoolState{})
	p.Limit = 1
	denied, beyond := keyIn("a", "denied"), contract.Beyond{Count: 5, Namespaces: []string{"a"}}
	p.refill(1000, contract.PoolFound{Waiting: []contract.TurnMember{{TurnKey: denied}}, Beyond: []contract.Beyond{beyond}}, nil)
	p.Member(denied).NotBefore = 1600
	assert.False(t, p.RefillDue(1000))
	assert.True(t, p.RefillDue(1000+refillPause))
}

// TestATurnThatWasJustGivenIsNotTakenForUnseen: its object was deleted while it starts, and its Velero object may still be made.
func TestATurnThatWasJustGivenIsNotTakenForUnseen(t *testing.T) {
	p := newPool(contract.PoolBackups, contract.PoolState{})
	p.Limit = 1
	p.request(contract.TurnRequest{TurnKey: keyIn("a", "deleted")}, 1000)
	turn, is := p.Begin(1000)
	require.True(t, is)
	unseen := map[contract.TurnKey]int64{turn.Key: turn.Began}
	assert.Len(t, p.settleUnseen(contract.PoolFound{}, unseen, 1044), 1)
	assert.Equal(t, 1, p.Running())
	assert.Empty(t, p.settleUnseen(contract.PoolFound{}, unseen, 1045))
	assert.Zero(t, p.Running())
}

// TestWhatFailsEachTimeItStartsKeepsNoTurn: its workflow was found not to run, and its object waits.
func TestWhatFailsEachTimeItStartsKeepsNoTurn(t *testing.T) {
	p := newPool(contract.PoolBackups, contract.PoolState{})
	p.Limit = 1
	fails, waits := keyIn("a", "fails"), keyIn("b", "waits")
	p.request(contract.TurnRequest{TurnKey: fails}, 1)
	p.request(contract.TurnRequest{TurnKey: waits}, 1)
	found := contract.PoolFound{Waiting: []contract.TurnMember{{TurnKey: fails}, {TurnKey: waits}}}
	begins := func(now int64) contract.TurnKey {
		turn, is := p.Begin(now)
		require.True(t, is)
		return turn.Key
	}
	require.Equal(t, fails, begins(1))
	p.MarkClosed(fails, 60)
	p.settleDoubts(found, map[contract.TurnKey]bool{fails: true}, 120)
	assert.Equal(t, waits, begins(120), "its namespace has had its turn")
	p.End(waits)
	require.Equal(t, fails, begins(130), "it waited at its place")
	p.MarkClosed(fails, 190)
	p.settleDoubts(found, map[contract.TurnKey]bool{fails: true}, 250)
	assert.Equal(t, int64(260), p.Member(fails).NotBefore, "the second return has a pause, as any other")
}

// TestWhatIsDeniedForEverDelaysOthersLessAndLess: it has turns, each after a longer pause, and none before all others.
func TestWhatIsDeniedForEverDelaysOthersLessAndLess(t *testing.T) {
	p := newPool(contract.PoolBackups, contract.PoolState{})
	p.Limit = 1
	key := keyIn("a", "denied")
	p.request(contract.TurnRequest{TurnKey: key}, 1)
	require.True(t, p.PutFirst(func(k contract.TurnKey) bool { return k == key }))
	now, pauses := int64(1), []int64{}
	for range 9 {
		turn, is := p.Begin(now)
		require.True(t, is)
		p.takeBack(contract.TurnReturn{TurnKey: key, Turn: turn.Began, Waits: true}, now+20)
		assert.False(t, p.Member(key).First)
		pauses = append(pauses, max(0, p.Member(key).NotBefore-now-20))
		now = max(now+20, p.Member(key).NotBefore)
	}
	assert.Equal(t, []int64{0, 10, 20, 40, 80, 160, 320, 600, 600}, pauses)
	next := newPool(contract.PoolBackups, p.state(now))
	assert.Equal(t, p.Member(key).NotBefore, next.Member(key).NotBefore, "the next run knows it")
	assert.Equal(t, 9, next.Member(key).Returned)
}
