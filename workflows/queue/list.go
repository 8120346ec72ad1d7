package queue

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

// list lists the objects. It does so twice, a pause between, if objects wait that may have a turn that is not known: of a lost
// run, or of this one from before the policy had no limit for a while. It asks no clock which objects those are.
func (r *queueRun) list(ctx workflow.Context, request contract.TurnsWanted) (contract.TurnsFound, error) {
	find := func() (contract.TurnsFound, error) {
		return call.LocalFirstWithin(ctx, r.options.Limits, findLimit, contract.FindTurns, request)
	}
	policy := r.policy
	found, err := find()
	unknown := r.unknown()
	if err != nil || !slices.ContainsFunc(r.pools, func(of *pool) bool {
		return unknown[of.name] && len(found.Pools[of.name].Waiting) > 0
	}) {
		return found, err
	}
	until := workflow.Now(ctx).Add(contract.TurnLossPause)
	if !r.Found { // else other turns go on
		r.pausedUntil = until.Unix()
		workflow.SetCurrentDetails(ctx, r.Details(workflow.Now(ctx).Unix()))
	}
	for written := true; written; {
		r.adopt(found.Rules, unknown)
		written, err = workflow.AwaitWithTimeout(ctx, until.Sub(workflow.Now(ctx)), func() bool { return r.policy != policy })
		if err != nil {
			return found, err
		}
		policy = r.policy
		if found, err = find(); err != nil {
			return found, err
		}
	}
	r.pausedUntil = 0
	return found, nil
}

// adopt applies the limits of the pools whose turns are known: they go on while those of another pool are waited for.
func (r *queueRun) adopt(rules contract.TurnRules, unknown map[contract.Pool]bool) {
	for _, of := range r.pools {
		if limit := rules.Limits[of.name]; limit > 0 && !unknown[of.name] {
			r.rules.Limits[of.name] = limit
		}
	}
}
