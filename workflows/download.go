package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/k8s/download"
	"holdfast.dev/holdfast/workflows/contract"
)

// downloadStep is what a NonAdminDownloadRequest needs next: an activity's name, stepWait or stepSettled.
type downloadStep = backupStep

const (
	stepRefreshDownload downloadStep = contract.ActivityRefreshDownload
	stepRequestDownload downloadStep = contract.ActivityRequestDownload
	stepRemoveDownload  downloadStep = contract.ActivityRemoveDownload
)

var downloadSummaries = map[downloadStep]string{
	stepRefreshDownload: "Read the request and hand on Velero's answer",
	stepRequestDownload: "Look whose the file is and ask Velero for a URL",
	stepRemoveDownload:  "Delete what is over",
}

// nextDownloadStep decides what a download request needs: one that is over goes, one without a verdict gets it, with the
// request to Velero where the file may be had.
func nextDownloadStep(v contract.DownloadView) downloadStep {
	switch {
	case download.Settled(v):
		return stepSettled
	case !v.Found, v.BeingDeleted, v.Expired:
		return stepRemoveDownload
	case !v.Judged, v.Refused, !v.Velero.Exists, !v.Velero.Current:
		return stepRequestDownload
	case v.Velero.Signed:
		return stepRefreshDownload
	}
	return stepWait // for Velero
}

// NonAdminDownloadRequest serves one NonAdminDownloadRequest from its creation, or any later event, until it is settled; the
// next event, or the end of its time, starts it again under the same ID. It is the only writer of the object's status.
func NonAdminDownloadRequest(ctx workflow.Context, in contract.DownloadInput, options Options) error {
	run := &downloadRun{in: in, options: options, signals: workflow.GetSignalChannel(ctx, contract.SignalChanged)}
	err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.DownloadState, error) {
		return contract.DownloadState{View: run.view}, nil
	})
	if err != nil {
		return err
	}
	return run.serve(ctx)
}

// downloadRun is the state of one run. Nothing in it outlives the run but what DownloadInput carries over.
type downloadRun struct {
	in      contract.DownloadInput
	options Options
	signals workflow.ReceiveChannel
	view    contract.DownloadView
	reread  workflow.Future // one timer, made anew only after it fired
}

func (r *downloadRun) serve(ctx workflow.Context) error {
	for {
		drain(r.signals)
		step, err := r.act(ctx)
		if err != nil {
			return err
		}
		if err := r.show(ctx); err != nil {
			return err
		}
		// From an empty drain to the return nothing may yield: an event that came meanwhile would be lost.
		switch {
		case step == stepSettled:
			if drain(r.signals) == 0 {
				return nil
			}
		case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			if drain(r.signals) == 0 {
				return workflow.NewContinueAsNewError(ctx, contract.WorkflowDownload, r.in)
			}
		default:
			if err := r.wait(ctx); err != nil {
				return err
			}
		}
	}
}

// act reads the present state and takes every step that is due. It returns stepSettled, or stepWait when the run cannot or
// should not go on at once.
func (r *downloadRun) act(ctx workflow.Context) (downloadStep, error) {
	step := stepRefreshDownload
	for taken := 1; ; taken++ {
		view, err := localFirst[contract.DownloadView](ctx, r.options, string(step), downloadSummaries[step],
			contract.DownloadStep{Ref: r.in.Ref})
		if err != nil {
			return "", err
		}
		r.view = view
		if step = nextDownloadStep(view); step == stepWait || step == stepSettled {
			return step, nil
		}
		if taken%maxStepsInARow != 0 {
			continue
		}
		if full, err := breathe(ctx); full || err != nil {
			return stepWait, err
		}
	}
}

func (r *downloadRun) show(ctx workflow.Context) error {
	return showPhases(ctx, r.view.Phase, &r.in.ShownPhase, r.view.Velero.Phase, &r.in.ShownVeleroPhase)
}

// wait blocks until a signal comes or it is time to re-read.
func (r *downloadRun) wait(ctx workflow.Context) error {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf(
		"**Requested:** waits for Velero to answer DownloadRequest `%s` with a signed URL.", r.view.Velero.Name))
	if r.reread == nil {
		r.reread = workflow.NewTimer(ctx, maxRereadInterval)
	}
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(r.signals, func(workflow.ReceiveChannel, bool) {})
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	selector.AddFuture(r.reread, func(workflow.Future) { r.reread = nil })
	selector.Select(ctx)
	return ctx.Err()
}
