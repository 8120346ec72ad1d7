package queue

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
)

// weigh notes the weight of a namespace, which may have been created since the objects were listed.
func (r *queueRun) weigh(request contract.TurnRequest) {
	if r.WantsListing() {
		r.weighed = append(slices.DeleteFunc(r.weighed, func(earlier contract.TurnRequest) bool {
			return earlier.Namespace == request.Namespace
		}), request)
	}
	r.setWeight(request)
}

func (r *queueRun) setWeight(request contract.TurnRequest) {
	if request.Weight <= 1 {
		delete(r.rules.Weights, request.Namespace)
		return
	}
	if r.rules.Weights == nil {
		r.rules.Weights = map[string]int{}
	}
	r.rules.Weights[request.Namespace] = request.Weight
}

// shownRules are the rules for a payload: of the weights only those of namespaces in which somebody waits. Others come with the
// next request of their namespace.
func (r *queueRun) shownRules() contract.TurnRules {
	rules := r.rules
	rules.Weights = map[string]int{}
	waits := func(namespace string) {
		if weight, has := r.rules.Weights[namespace]; has {
			rules.Weights[namespace] = weight
		}
	}
	for _, of := range r.pools {
		for _, member := range of.Members {
			waits(member.Namespace)
		}
		for _, lane := range of.Lanes {
			for _, namespace := range lane.More {
				waits(namespace)
			}
		}
	}
	return rules
}

// carry is what the next run needs.
func (r *queueRun) carry(now int64) contract.VeleroQueueInput {
	next := contract.VeleroQueueInput{
		Cluster: r.cluster, Found: r.Found, List: r.WantsListing(), Unseen: r.reads || len(r.unseen) > 0, NextCheck: r.NextCheck,
		Rules: r.shownRules(),
		Pools: map[contract.Pool]contract.PoolState{},
	}
	for _, of := range r.pools {
		next.Pools[of.name] = of.state(now)
	}
	return next
}

// Next hands everything over to the next run.
func (r *queueRun) Next(ctx workflow.Context) error {
	return workflow.NewContinueAsNewError(ctx, contract.KindVeleroQueue.Workflow, r.carry(workflow.Now(ctx).Unix()))
}
