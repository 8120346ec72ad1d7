package approval

import (
	"fmt"
	"strings"
	"unicode"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/kinds"
)

const maxDecisionReason = 512

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind:       contract.KindApproval,
	Activities: contract.Names(contract.RefreshApproval, contract.AdvanceApproval, contract.DecideApproval),
	Read:       contract.RefreshApproval.Name, Decisions: approvalDecisions,
	Run: kinds.Serving(Workflow),
}

// Workflow carries out the decisions of administrators about one NonAdminBackupStorageLocation, however they are made: by
// kubectl or `holdfast approve`, which write the approval request and cause SignalChanged; or by UpdateDecide or SignalDecide,
// for which an activity writes it. It is the only writer of the request's status, and is open as long as the location exists
// and needs approval.
func Workflow(ctx workflow.Context, in contract.ObjectInput, options call.Options) error {
	run := &approvalRun{
		in: in, options: options, mutex: workflow.NewMutex(ctx),
		changed: workflow.GetSignalChannel(ctx, contract.SignalChanged),
		decided: workflow.GetSignalChannel(ctx, contract.SignalDecide),
	}
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.ApprovalState, error) {
		return contract.ApprovalState{View: run.view}, nil
	})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, contract.UpdateDecide, run.decide, workflow.UpdateHandlerOptions{
		// The validator refuses what is wrong in any state, and leaves no trace in the history; the handler refuses the rest.
		Validator:   validateDecision,
		Description: "Approve, reject or revoke, with a reason and the resourceVersion of the approval request that you have read",
	})
	if err != nil {
		return err
	}
	return entity.Serve(ctx, run)
}

// approvalRun is the state of one run. Nothing in it outlives the run but what ObjectInput carries over.
type approvalRun struct {
	in      contract.ObjectInput
	options call.Options
	changed workflow.ReceiveChannel
	decided workflow.ReceiveChannel
	view    contract.ApprovalView
	loaded  bool
	// mutex is held to read and write the approval request: by the loop, or by an Update's handler.
	mutex   workflow.Mutex
	reread  workflow.Future
	signals int    // SignalDecide received in this run
	refused string // the error of the last SignalDecide, if it was refused
}

// Pass implements entity.Object.
func (r *approvalRun) Pass(ctx workflow.Context) (entity.Outcome, error) {
	step, err := r.advance(ctx)
	if err != nil {
		return entity.Waiting, err
	}
	if err := r.drainDecisions(ctx); err != nil {
		return entity.Waiting, err
	}
	return entity.OutcomeOf(step), r.show(ctx)
}

// Drain implements entity.Object. Decisions are counted here, and received by the pass.
func (r *approvalRun) Drain() int { return entity.Drain(r.changed) + r.decided.Len() }

// Carry implements entity.Object.
func (r *approvalRun) Carry() any { return r.in }

// advance takes the steps that are due and returns what follows: entity.Wait or entity.Settle.
func (r *approvalRun) advance(ctx workflow.Context) (entity.Step, error) {
	if err := r.mutex.Lock(ctx); err != nil {
		return entity.Step{}, err
	}
	defer r.mutex.Unlock()
	return r.advanceLocked(ctx)
}

func (r *approvalRun) advanceLocked(ctx workflow.Context) (entity.Step, error) {
	return entity.Course[contract.ApprovalView]{Read: stepRefreshApproval, Next: approvalDecisions.Next, Do: r.take}.Take(ctx)
}

func (r *approvalRun) take(ctx workflow.Context, step entity.Step) (contract.ApprovalView, error) {
	view, err := call.LocalFirst(ctx, r.options.Limits, approvalSteps.Activity(step), contract.ApprovalStep{Ref: r.in.Ref})
	if err == nil {
		r.view, r.loaded = view, true
	}
	return view, err
}

var approvalDecisions = entity.Decisions[contract.ApprovalView]{
	Next:    nextApprovalStep,
	Settled: func(view contract.ApprovalView) bool { return NextApproval(view) == contract.ApprovalClose },
}

func nextApprovalStep(view contract.ApprovalView) entity.Step {
	switch NextApproval(view) {
	case contract.ApprovalWait:
		return entity.Wait
	case contract.ApprovalClose:
		return entity.Settle
	}
	return stepAdvanceApproval
}

// The steps of a StorageLocationApproval.
var (
	approvalSteps entity.Steps[contract.ApprovalStep, contract.ApprovalView]

	stepRefreshApproval = approvalSteps.Act(contract.RefreshApproval)
	stepAdvanceApproval = approvalSteps.Act(contract.AdvanceApproval)
)

func validateDecision(request contract.DecisionRequest) error {
	refuse := func(format string, args ...any) error {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), contract.ErrorDecisionInvalid, nil)
	}
	switch request.Decision {
	case contract.DecisionApprove, contract.DecisionReject, contract.DecisionRevoke:
	default:
		return refuse("decision %q: want approve, reject or revoke", request.Decision)
	}
	unreadable := strings.ContainsFunc(request.Reason, unicode.IsControl)
	if strings.TrimSpace(request.Reason) == "" || len(request.Reason) > maxDecisionReason || unreadable {
		return refuse("reason: want 1 to %d bytes in one line", maxDecisionReason)
	}
	if request.ResourceVersion == "" {
		return refuse("resourceVersion: want that of the approval request that you have read; query %q shows it", contract.QueryState)
	}
	return nil
}

// decide handles UpdateDecide: it writes the decision, has it carried out, and returns the result.
func (r *approvalRun) decide(ctx workflow.Context, request contract.DecisionRequest) (contract.DecisionOutcome, error) {
	return r.carryOut(ctx, contract.DecisionStep{
		Ref: r.in.Ref, Request: request, UpdateID: workflow.GetCurrentUpdateInfo(ctx).ID,
	})
}

func (r *approvalRun) carryOut(ctx workflow.Context, step contract.DecisionStep) (contract.DecisionOutcome, error) {
	if err := workflow.Await(ctx, func() bool { return r.loaded }); err != nil {
		return contract.DecisionOutcome{}, err
	}
	if err := r.mutex.Lock(ctx); err != nil {
		return contract.DecisionOutcome{}, err
	}
	defer r.mutex.Unlock()
	view, err := call.Durable(ctx, r.options.Limits, contract.DecideApproval, step)
	refused := err
	if temporal.IsCanceledError(refused) {
		return contract.DecisionOutcome{}, refused
	}
	if refused == nil {
		r.view = view
	}
	if _, err := r.advanceLocked(ctx); err != nil { // after a refusal too: the details must show the present state
		return contract.DecisionOutcome{}, err
	}
	if err := r.show(ctx); err != nil {
		return contract.DecisionOutcome{}, err
	}
	if refused != nil {
		return contract.DecisionOutcome{}, refused
	}
	last := r.view.Last
	if last == nil || (view.Last != nil && view.Last.Generation == last.Generation) {
		return contract.DecisionOutcome{}, temporal.NewNonRetryableApplicationError(
			"nothing was decided: the tenant or another administrator has changed the request meanwhile; read it again",
			contract.ErrorLookAgain, nil)
	}
	return contract.DecisionOutcome{Decided: *last, State: r.view.State()}, nil
}

// drainDecisions carries out the decisions that came by signal. A refused one is shown and otherwise forgotten.
func (r *approvalRun) drainDecisions(ctx workflow.Context) error {
	for r.decided.Len() > 0 {
		var request contract.DecisionRequest
		waiting := r.decided.Len()
		readable := r.decided.ReceiveAsync(&request) // skips unreadable ones
		r.signals += waiting - r.decided.Len()
		err := error(nil)
		if readable {
			err = validateDecision(request)
		}
		if readable && err == nil {
			_, err = r.carryOut(ctx, contract.DecisionStep{Ref: r.in.Ref, Request: request, SignalNumber: r.signals})
		}
		switch {
		case temporal.IsCanceledError(err):
			return err
		case err != nil:
			r.refused = fmt.Sprintf("the last decision by signal (%s) was refused: %s", request.Decision, call.Cause(err))
		default:
			r.refused = ""
		}
	}
	return nil
}

func (r *approvalRun) show(ctx workflow.Context) error {
	workflow.SetCurrentDetails(ctx, approvalDetails(r.in.Ref, r.view, r.refused))
	return entity.Show(ctx, &r.in, approvalPhases[r.view.State()], "")
}

// Wait implements entity.Object. It waits until a signal comes or the next re-read is due.
func (r *approvalRun) Wait(ctx workflow.Context) error {
	selector := workflow.NewSelector(ctx)
	for _, signals := range []workflow.ReceiveChannel{r.changed, r.decided, ctx.Done()} {
		selector.AddReceive(signals, func(workflow.ReceiveChannel, bool) {})
	}
	if r.reread == nil {
		r.reread = workflow.NewTimer(ctx, approvalReread)
	}
	selector.AddFuture(r.reread, func(workflow.Future) { r.reread = nil })
	selector.Select(ctx)
	return ctx.Err()
}
