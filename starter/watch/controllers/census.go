package controllers

import (
	"context"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/metrics"
)

// phases are the values of the label phase. Any other value (a status can be forged) counts as unknown.
var phases = map[string]string{
	"":                                    "new", // not seen by its workflow yet
	string(oadpv1alpha1.NonAdminPhaseNew): "new",
	string(oadpv1alpha1.NonAdminPhaseBackingOff): "backing_off",
	string(oadpv1alpha1.NonAdminPhaseCreated):    "created",
	string(oadpv1alpha1.NonAdminPhaseDeleting):   "deleting",
}

const unknownPhase = "unknown"

// Count implements Watcher.
func (k *Kind[T]) Count(ctx context.Context, census *metrics.Census) error {
	if k.Census == nil && k.Unfinished == nil {
		return nil
	}
	each := func(T) {}
	if k.Census != nil {
		var err error
		if each, err = k.Census(ctx, census); err != nil {
			return err
		}
	}
	counted := map[string]int{unknownPhase: 0}
	for _, phase := range phases {
		counted[phase] = 0
	}
	k.Each(ctx, func(object T) {
		if k.Phases != nil {
			phase, known := phases[k.Own.Phase(object)]
			if !known {
				phase = unknownPhase
			}
			counted[phase]++
		}
		if k.Unfinished != nil && k.Unfinished(object) {
			census.Unfinished.Add(k.Workflow.Kubernetes, object)
		}
		each(object)
	})
	if k.Phases != nil {
		if census.Phases == nil {
			census.Phases = map[*metrics.Phases]map[string]int{}
		}
		census.Phases[k.Phases] = counted
	}
	return nil
}
