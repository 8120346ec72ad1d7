package velero

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
)

// Env is what the watchers of these kinds share.
type Env struct {
	*controllers.Env
	Policy policy.Getter
	// PositionsChanged has the queue positions computed again.
	PositionsChanged func()
	// DefaultPlansChanged has default plans compared with the namespaces and the policy.
	DefaultPlansChanged func()
	Turns               Turns
	// TenantLabels: the metrics have the names of tenants' objects.
	TenantLabels bool
}

// Kinds are the kinds that Velero serves.
func Kinds(env *Env) []controllers.Watcher {
	return []controllers.Watcher{
		newBackups(env).Kind, newRestores(env).Kind, newDownloads(env).Kind, newLocations(env).Kind, newPlans(env).Kind,
		newDrills(env).Kind,
	}
}

// awaitsCreation: the workflow of an object in the phase is about to create its Velero object, or has just done so.
func awaitsCreation(phase string) bool {
	return phase == "" || phase == string(oadpv1alpha1.NonAdminPhaseNew)
}

func backingOff(phase string) bool { return phase == string(oadpv1alpha1.NonAdminPhaseBackingOff) }

// newPhase reports whether the phase of an object is another one.
func newPhase(of *caches.Kind) func(before, after client.Object) bool {
	return func(before, after client.Object) bool { return of.Phase(before) != of.Phase(after) }
}

// rejected: a change of the status by us, after which an object is judged once more: what its rejection depends on may have
// changed before the cache had the rejection.
func rejected(of *caches.Kind) func(before, after client.Object) bool {
	return func(before, after client.Object) bool {
		return newPhase(of)(before, after) && backingOff(of.Phase(after))
	}
}
