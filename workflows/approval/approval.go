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

// Kind is how the workflow is run. It carries out the decisions of administrators about one NonAdminBackupStorageLocation,
// however they are made: by kubectl or `holdfast approve`, which write the approval request and cause SignalChanged; or by
// UpdateDecide or SignalDecide, for which an activity writes it. It is the only writer of the request's status, and is open as
// long as the location exists and needs approval.
var Kind = kinds.Of(entity.Kind[*contract.ApprovalInput, contract.ObjectStep, contract.ApprovalView]{
	Kind: contract.KindApproval, Read: contract.RefreshApproval,
	Activities: contract.Names(contract.AdvanceApproval, contract.DecideApproval),
	Args:       (*contract.ApprovalInput).Step,
	Settled:    func(v contract.ApprovalView) bool { return NextApproval(v) == contract.ApprovalClose },
	Next: func(v contract.ApprovalView) (next contract.Activity[contract.ObjectStep, contract.ApprovalView]) {
		if NextApproval(v) != contract.ApprovalWait {
			next = contract.AdvanceApproval
		}
		return next
	},
	Phases: func(v contract.ApprovalView) (string, string) { return approvalPhases[v.State()], "" },
	Reread: approvalReread, Begin: begin,
	Waits: contract.ApprovalView{Needed: true},
})

type run = entity.Run[*contract.ApprovalInput, contract.ObjectStep, contract.ApprovalView]

// approvalRun is what a run of this kind has besides.
type approvalRun struct {
	*run
	decided workflow.ReceiveChannel
	// mutex is held to read and write the approval request: by the loop, or by an Update's handler.
	mutex   workflow.Mutex
	signals int // SignalDecide received in this run
}

func begin(ctx workflow.Context, r *run) error {
	own := &approvalRun{run: r, mutex: workflow.NewMutex(ctx), decided: workflow.GetSignalChannel(ctx, contract.SignalDecide)}
	r.Others = []workflow.ReceiveChannel{own.decided}
	r.Pass = own.pass
	r.Drain = func() int { return entity.Drain(r.Changed) + own.decided.Len() } // the pass receives decisions
	return workflow.SetUpdateHandlerWithOptions(ctx, contract.UpdateDecide, own.decide, workflow.UpdateHandlerOptions{
		// The validator refuses what is wrong in any state, and leaves no trace in the history; the handler refuses the rest.
		Validator:   validateDecision,
		Description: "Approve, reject or revoke, with a reason and the resourceVersion of the approval request that you have read",
	})
}

func (r *approvalRun) pass(ctx workflow.Context) (settled bool, err error) {
	if settled, err = r.advance(ctx); err != nil {
		return false, err
	}
	if err := r.drainDecisions(ctx); err != nil {
		return false, err
	}
	return settled, r.show(ctx)
}

// advance takes the steps that are due.
func (r *approvalRun) advance(ctx workflow.Context) (settled bool, err error) {
	if err := r.mutex.Lock(ctx); err != nil {
		return false, err
	}
	defer r.mutex.Unlock()
	return r.Steps(ctx)
}

func validateDecision(request contract.DecisionRequest) error {
	refuse := func(format string, args ...any) error {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), contract.ErrorDecisionInvalid, nil)
	}
	switch request.Decision {
	case contract.DecisionApprove, contract.DecisionReject, contract.DecisionRevoke:
	default:
		return refuse("decision %q: must be approve, reject or revoke", request.Decision)
	}
	unreadable := strings.ContainsFunc(request.Reason, unicode.IsControl)
	if strings.TrimSpace(request.Reason) == "" || len(request.Reason) > maxDecisionReason || unreadable {
		return refuse("reason: must have 1 to %d bytes, in one line", maxDecisionReason)
	}
	if request.ResourceVersion == "" {
		return refuse("resourceVersion: must be that of the approval request that you read; query %q shows it", contract.QueryState)
	}
	return nil
}

// decide handles UpdateDecide: it writes the decision, has it carried out, and returns the result.
func (r *approvalRun) decide(ctx workflow.Context, request contract.DecisionRequest) (contract.DecisionOutcome, error) {
	return r.carryOut(ctx, contract.DecisionStep{
		Ref: r.In.Ref, Request: request, UpdateID: workflow.GetCurrentUpdateInfo(ctx).ID,
	})
}

func (r *approvalRun) carryOut(ctx workflow.Context, step contract.DecisionStep) (contract.DecisionOutcome, error) {
	if err := workflow.Await(ctx, func() bool { return r.Known }); err != nil {
		return contract.DecisionOutcome{}, err
	}
	if err := r.mutex.Lock(ctx); err != nil {
		return contract.DecisionOutcome{}, err
	}
	defer r.mutex.Unlock()
	view, err := call.Durable(ctx, r.Options.Limits, contract.DecideApproval, step)
	refused := err
	if temporal.IsCanceledError(refused) {
		return contract.DecisionOutcome{}, refused
	}
	if refused == nil {
		r.View = view
	}
	if _, err := r.Steps(ctx); err != nil { // after a refusal too: the details must show the present state
		return contract.DecisionOutcome{}, err
	}
	if err := r.show(ctx); err != nil {
		return contract.DecisionOutcome{}, err
	}
	if refused != nil {
		return contract.DecisionOutcome{}, refused
	}
	last := r.View.Last
	if last == nil || (view.Last != nil && view.Last.Generation == last.Generation) {
		return contract.DecisionOutcome{}, temporal.NewNonRetryableApplicationError(
			"nothing was decided: the tenant or another administrator has changed the request meanwhile; read it again",
			contract.ErrorLookAgain, nil)
	}
	return contract.DecisionOutcome{Decided: *last, State: r.View.State()}, nil
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
			_, err = r.carryOut(ctx, contract.DecisionStep{Ref: r.In.Ref, Request: request, SignalNumber: r.signals})
		}
		switch {
		case temporal.IsCanceledError(err):
			return err
		case err != nil:
			r.In.Refused = fmt.Sprintf("the last decision by signal (%s) was refused: %s", request.Decision, call.Cause(err))
		default:
			r.In.Refused = ""
		}
	}
	return nil
}

func (r *approvalRun) show(ctx workflow.Context) error {
	workflow.SetCurrentDetails(ctx, approvalDetails(r.In.Ref, r.View, r.In.Refused))
	return r.Show(ctx)
}
