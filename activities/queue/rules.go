package queue

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/contract"
)

// rules returns the policy's rules, with the weights of the namespaces that exist.
func (a *Activities) rules(ctx context.Context) (contract.TurnRules, error) {
	current, version, err := a.policy(ctx)
	if err != nil {
		return contract.TurnRules{}, fmt.Errorf("read the admin's policy: %w", err)
	}
	rules := RulesOf(current.Queue)
	rules.Version = version
	if len(current.Queue.Weights) == 0 {
		return rules, nil
	}
	namespaces, err := activities.ListMetadata(ctx, a.Client, corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err != nil {
		return rules, err
	}
	rules.Weights = map[string]int{}
	for i := range namespaces {
		if weight := current.Queue.WeightOf(namespaces[i].Labels); weight != 1 {
			rules.Weights[namespaces[i].Name] = weight
		}
	}
	return rules, nil
}

// weightsFor returns the weights of the namespaces that the queue will know, since there may be thousands of others.
func weightsFor(weights map[string]int, found contract.TurnsFound, wanted contract.TurnsWanted) map[string]int {
	if len(weights) == 0 {
		return nil
	}
	known := map[string]int{}
	know := func(namespace string) {
		if weight, has := weights[namespace]; has {
			known[namespace] = weight
		}
	}
	for _, pool := range contract.Pools() {
		for _, lane := range wanted.Lanes[pool] {
			for _, namespace := range lane.Namespaces {
				know(namespace)
			}
		}
		for _, member := range found.Pools[pool].Waiting {
			know(member.Namespace)
		}
	}
	return known
}

// policy returns the policy in force and its version, which may change in between.
func (a *Activities) policy(ctx context.Context) (policy.Policy, string, error) {
	for {
		version := a.Policy.Version()
		current, err := a.Policy.Get(ctx)
		if now := a.Policy.Version(); err != nil || now == version {
			return current, now, err
		}
	}
}

// RulesOf returns the rules of a policy, without weights.
func RulesOf(queue policy.Queue) contract.TurnRules {
	rules := contract.TurnRules{Limits: map[contract.Pool]int{}, Timeout: int64(queue.Timeout() / time.Second)}
	for pool, limit := range map[contract.Pool]int{
		contract.PoolBackups: queue.MaxActive, contract.PoolRestores: queue.MaxActiveRestores,
	} {
		if limit > 0 {
			rules.Limits[pool] = limit
		}
	}
	return rules
}
