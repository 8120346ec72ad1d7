package download

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/entity"
	"holdfast.dev/holdfast/workflows/kinds"
	"holdfast.dev/holdfast/workflows/stall"
)

// Kind is how the workflow is run.
var Kind = kinds.Kind{
	Kind:       contract.KindDownload,
	Activities: contract.Names(contract.RefreshDownload, contract.RequestDownload, contract.RemoveDownload),
	Read:       contract.RefreshDownload.Name, Decisions: downloadDecisions,
	Run: kinds.Serving(Workflow),
}

// The steps of a NonAdminDownloadRequest.
var (
	downloadSteps entity.Steps[contract.DownloadStep, contract.DownloadView]

	stepRefreshDownload = downloadSteps.Act(contract.RefreshDownload)
	stepRequestDownload = downloadSteps.Act(contract.RequestDownload)
	stepRemoveDownload  = downloadSteps.Act(contract.RemoveDownload)
)

var downloadDecisions = entity.Decisions[contract.DownloadView]{
	Next: nextDownloadStep, Settled: Settled, Awaited: awaitedOfDownload,
}

// nextDownloadStep decides what a download request needs: an expired one is deleted, one without a verdict gets it, together
// with the request to Velero if the file may be downloaded.
func nextDownloadStep(v contract.DownloadView) entity.Step {
	switch {
	case Settled(v):
		return entity.Settle
	case !v.Found, v.BeingDeleted, v.Expired:
		return stepRemoveDownload
	case !v.Judged, v.Refused, !v.Velero.Exists, !v.Velero.Current:
		return stepRequestDownload
	case v.Velero.Signed:
		return stepRefreshDownload
	}
	return entity.Wait // for Velero
}

// awaitedOfDownload says in Markdown what a request waits for, and who must act.
func awaitedOfDownload(v contract.DownloadView) string {
	return fmt.Sprintf("**Requested:** waits for Velero to answer DownloadRequest `%s` with a signed URL.", v.Velero.Name)
}

// Workflow serves one NonAdminDownloadRequest from its creation, or any later event, until it is settled; the next event, or
// its expiration, starts it again under the same ID. It is the only writer of the object's status.
func Workflow(ctx workflow.Context, in contract.ObjectInput, options call.Options) error {
	run := &downloadRun{in: in, options: options, signals: workflow.GetSignalChannel(ctx, contract.SignalChanged)}
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.DownloadState, error) {
		return contract.DownloadState{View: run.view}, nil
	})
	if err != nil {
		return err
	}
	return entity.Serve(ctx, run)
}

// downloadRun is the state of one run. Nothing in it outlives the run but what ObjectInput carries over.
type downloadRun struct {
	in      contract.ObjectInput
	options call.Options
	signals workflow.ReceiveChannel
	view    contract.DownloadView
	reread  workflow.Future // one timer, renewed only after it fired
}

// Pass implements entity.Object.
func (r *downloadRun) Pass(ctx workflow.Context) (entity.Outcome, error) {
	step, err := entity.Course[contract.DownloadView]{Read: stepRefreshDownload, Next: downloadDecisions.Next, Do: r.take}.Take(ctx)
	if err != nil {
		return entity.Waiting, err
	}
	return entity.OutcomeOf(step), r.show(ctx)
}

func (r *downloadRun) take(ctx workflow.Context, step entity.Step) (contract.DownloadView, error) {
	view, err := call.LocalFirst(ctx, r.options.Limits, downloadSteps.Activity(step), contract.DownloadStep{Ref: r.in.Ref})
	if err == nil {
		r.view = view
	}
	return view, err
}

// Drain implements entity.Object.
func (r *downloadRun) Drain() int { return entity.Drain(r.signals) }

// Carry implements entity.Object.
func (r *downloadRun) Carry() any { return r.in }

func (r *downloadRun) show(ctx workflow.Context) error {
	return entity.Show(ctx, &r.in, r.view.Phase, r.view.Velero.Phase)
}

// Wait implements entity.Object. It waits until a signal comes or the next re-read is due.
func (r *downloadRun) Wait(ctx workflow.Context) error {
	workflow.SetCurrentDetails(ctx, downloadDecisions.Awaited(r.view))
	if r.reread == nil {
		r.reread = workflow.NewTimer(ctx, stall.MaxRereadInterval)
	}
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(r.signals, func(workflow.ReceiveChannel, bool) {})
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	selector.AddFuture(r.reread, func(workflow.Future) { r.reread = nil })
	selector.Select(ctx)
	return ctx.Err()
}

// Settled reports whether nothing is left to do for a NonAdminDownloadRequest until somebody changes it, what its verdict
// depends on changes, or it expires. The watcher starts no workflow for a settled object, and a workflow ends when its object
// is settled.
func Settled(v contract.DownloadView) bool {
	switch {
	case !v.Found, v.BeingDeleted:
		return !v.Velero.Exists
	case v.Expired:
		return false
	case v.Answered:
		return true
	}
	return v.Refused && !v.Velero.Exists
}
