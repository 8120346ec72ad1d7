package turns_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"pgregory.net/rapid"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/turns"
	"holdfast.dev/holdfast/workflows/workflowtest/environment"
	"holdfast.dev/holdfast/workflows/workflowtest/property"
)

// pools is a minimal User: members of two pools ask by signal, each pool has its limit, and operators set one for a time.
type pools struct {
	turns.Coordinator[string]
	asks, ends workflow.ReceiveChannel
	given      []string
	limit      poolLimit
	found      []string
	details    []string
}

type poolLimit struct {
	Limit int
	Until int64
}

func (p *pools) run(ctx workflow.Context) error {
	p.asks, p.ends = workflow.GetSignalChannel(ctx, "ask"), workflow.GetSignalChannel(ctx, "end")
	p.Coordinator = turns.Coordinator[string]{
		User: p, Interval: 600, Grace: 60, Everybody: true,
		Queues: []*turns.Queue[string]{{Alone: true, Weights: map[string]int{"gold": 2}}, {Limit: 1}},
	}
	err := workflow.SetUpdateHandler(ctx, "limit", func(_ workflow.Context, limit poolLimit) error {
		p.limit = limit
		p.Touch()
		return nil
	})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandler(ctx, "next", func(_ workflow.Context, name string) (bool, error) {
		p.Touch()
		return p.Queues[0].PutFirst(has(name)), nil
	})
	if err != nil {
		return err
	}
	return p.Serve(ctx)
}

func (p *pools) Find(ctx workflow.Context) error {
	for _, name := range p.found {
		p.Queues[0].Hold(turns.Turn[string]{Member: who(name), Began: workflow.Now(ctx).Unix()})
	}
	return nil
}

func (p *pools) Pending() bool { return p.asks.Len()+p.ends.Len() > 0 }

func (p *pools) Receive(ctx workflow.Context) {
	var name string
	for p.ends.ReceiveAsync(&name) {
		for _, queue := range p.Queues {
			queue.Leave(name)
			queue.End(name)
		}
	}
	for p.asks.ReceiveAsync(&name) {
		queue := p.Queues[0]
		if strings.Contains(name, "restore") {
			queue = p.Queues[1]
		}
		member := who(name)
		if queue.Member(member.Key) == nil && queue.Turn(member.Key) == nil {
			queue.Add(workflow.Now(ctx).Unix(), member)
		}
	}
}

func (p *pools) Pace(ctx workflow.Context) {
	p.Queues[0].Limit, p.Until = 1, 0
	if workflow.Now(ctx).Unix() < p.limit.Until {
		p.Queues[0].Limit, p.Until = p.limit.Limit, p.limit.Until
	}
}

func (p *pools) Give(ctx workflow.Context, _ *turns.Queue[string], turn turns.Turn[string], _ bool) error {
	p.given = append(p.given, fmt.Sprintf("%d %s", workflow.Now(ctx).Unix()%1000, turn.Key))
	return workflow.Sleep(ctx, time.Second) // signals come meanwhile
}

func (p *pools) Deliver(workflow.Context) error               { return nil }
func (p *pools) Lost(queue *turns.Queue[string], name string) { queue.End(name) }
func (p *pools) WorkflowID(name string) string                { return name }
func (p *pools) Next(workflow.Context) error                  { return fmt.Errorf("not expected") }
func (p *pools) Details(now int64) string {
	text := turns.Listed("Next:", p.Queues[0].Head(now, turns.Shown), len(p.Queues[0].Members), func(m turns.Member[string]) string { return m.Key })
	p.details = append(p.details, text)
	return text
}

// play sends signals and Updates at seconds after the start, until no member is left.
func (p *pools) play(t require.TestingT, gone []string, at map[int]func(*testsuite.TestWorkflowEnvironment)) {
	env := environment.New(&testsuite.WorkflowTestSuite{})
	env.SetStartTime(time.Unix(1_000_000, 0))
	env.RegisterActivityWithOptions(func(context.Context, contract.Workflows) (contract.Workflows, error) {
		return contract.Workflows{WorkflowIDs: gone}, nil
	}, activity.RegisterOptions{Name: contract.DescribeWorkflows.Name})
	for second, do := range at {
		env.RegisterDelayedCallback(func() { do(env) }, time.Duration(second)*time.Second)
	}
	env.ExecuteWorkflow(p.run)
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
}

func asks(names ...string) func(*testsuite.TestWorkflowEnvironment) {
	return func(env *testsuite.TestWorkflowEnvironment) {
		for _, name := range names {
			env.SignalWorkflow("ask", name)
		}
	}
}

func end(names ...string) func(*testsuite.TestWorkflowEnvironment) {
	return func(env *testsuite.TestWorkflowEnvironment) {
		for _, name := range names {
			env.SignalWorkflow("end", name)
		}
	}
}

func updates(update string, in any) func(*testsuite.TestWorkflowEnvironment) {
	return func(env *testsuite.TestWorkflowEnvironment) {
		env.UpdateWorkflow(update, update, &testsuite.TestUpdateCallback{
			OnReject: func(error) {}, OnAccept: func() {}, OnComplete: func(any, error) {},
		}, in)
	}
}

func TestACoordinatorOfTwoPools(t *testing.T) {
	p := &pools{}
	p.play(t, nil, map[int]func(*testsuite.TestWorkflowEnvironment){
		0:  asks("gold/1", "gold/2", "gold/3", "iron/1", "iron/2", "iron/restore-1", "gold/restore-2", "low/1@1"),
		10: end("gold/1"), 20: end("gold/2"), 30: end("iron/1", "iron/restore-1"),
		40: updates("next", "iron/2"), 50: end("gold/3"),
		60: updates("limit", poolLimit{Limit: 2, Until: 1_000_100}), 70: asks("tin/1", "tin/2"),
		110: end("iron/2"), 120: end("low/1"), 130: end("tin/1", "gold/restore-2"), 140: end("tin/2"),
	})
	assert.Equal(t, []string{
		"0 gold/1", "1 iron/restore-1", // each pool has its limit
		"10 gold/2", "20 iron/1", // gold has two a round
		"30 gold/3", "31 gold/restore-2",
		"50 iron/2", // an operator put it first
		"60 low/1",  // two at a time until 100; the lower lane is alone then
		"120 tin/1", "130 tin/2",
	}, p.given)
	assert.Contains(t, p.details, "\nNext:\n\niron/2\nlow/1\n")
}

// TestANamespaceThatComesBackIsTheLast: also if it was away only while the limit was full, and no turn began.
func TestANamespaceThatComesBackIsTheLast(t *testing.T) {
	p := &pools{}
	p.play(t, nil, map[int]func(*testsuite.TestWorkflowEnvironment){
		0: asks("a/1", "b/1", "c/1"), 10: end("b/1"), 20: asks("b/2"),
		30: end("a/1"), 40: end("c/1"), 50: end("b/2"),
	})
	assert.Equal(t, []string{"0 a/1", "30 c/1", "40 b/2"}, p.given)
}

// rounds is what turns in one pool must be, one at a time, if the lanes are settled after each event.
type rounds struct {
	round   []string
	waiting []string
	turn    string
	given   []string
}

func (r *rounds) happens(at int, event, name string) {
	switch {
	case event == "end":
		r.waiting = slices.DeleteFunc(r.waiting, func(other string) bool { return other == name })
		if r.turn == name {
			r.turn = ""
		}
	case r.turn != name && !slices.Contains(r.waiting, name):
		r.waiting = append(r.waiting, name)
		if !slices.Contains(r.round, name[:1]) {
			r.round = append(r.round, name[:1])
		}
	}
	waits := func(namespace string) int {
		return slices.IndexFunc(r.waiting, func(name string) bool { return name[:1] == namespace })
	}
	settle := func() {
		r.round = slices.DeleteFunc(r.round, func(namespace string) bool { return waits(namespace) < 0 })
	}
	settle()
	if r.turn == "" && len(r.round) > 0 {
		next := waits(r.round[0])
		r.turn = r.waiting[next]
		r.waiting = slices.Delete(r.waiting, next, next+1)
		r.round = append(r.round[1:], r.round[0])
		r.given = append(r.given, fmt.Sprintf("%d %s", at%1000, r.turn))
		settle()
	}
}

// TestLanesAreSettledAtEachPass: the turns of histories began in that order.
func TestLanesAreSettledAtEachPass(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		want, events := &rounds{}, map[int]func(*testsuite.TestWorkflowEnvironment){}
		happens := func(event, name string) {
			at := 10 * len(events)
			want.happens(at, event, name)
			events[at] = map[string]func(...string) func(*testsuite.TestWorkflowEnvironment){"ask": asks, "end": end}[event](name)
		}
		happens("ask", "a/1")
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			if want.turn == "" {
				break // the run ends
			}
			happens(rapid.SampledFrom([]string{"ask", "ask", "end"}).Draw(t, "event"), rapid.SampledFrom([]string{
				"a/1", "a/2", "b/1", "b/2", "c/1", "d/1",
			}).Draw(t, "name"))
		}
		for want.turn != "" {
			happens("end", want.turn)
		}
		p := &pools{}
		p.play(t, nil, events)
		require.Equal(t, want.given, p.given)
	})
}

func TestWhoIsFoundCountsAndWhoIsLostGoes(t *testing.T) {
	p := &pools{found: []string{"gold/0"}}
	p.play(t, []string{"gold/0", "iron/1"}, map[int]func(*testsuite.TestWorkflowEnvironment){
		1: asks("iron/1", "iron/2"), 2000: end("iron/2"),
	})
	require.Len(t, p.given, 1, p.given)
	assert.Contains(t, p.given[0], " iron/2", "iron/1 was gone, and gold/0 had its time")
}
