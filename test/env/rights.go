package env

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// NeverForgiven begins the line of a finding that is no matter of chance: a secret that is shown, a right that is missing. The
// gate refuses a run whose output has such a line, without a second run.
const NeverForgiven = "never forgiven: "

// WholeAgain begins the line of a look at all tests that could not be taken: the gate runs all of them again, not only those that
// failed.
const WholeAgain = "the whole package again: "

// Right is one thing that a role lets an account do.
type Right struct {
	// User is the service account's name.
	User string
	// Verb, Group and Resource are what is granted; the resource is with its subresource, such as pods/log.
	Verb, Group, Resource string
	// Namespace is where; everywhere if empty.
	Namespace string
}

// String returns user, verb and resource, wherever it is granted.
func (r Right) String() string { return r.User + " " + r.Verb + " " + r.Group + "/" + r.Resource }

// covers reports whether r is all that a request needs.
func (r Right) covers(needed Right) bool {
	return r.String() == needed.String() && (r.Namespace == "" || r.Namespace == needed.Namespace)
}

// Needs is the right that the request takes.
func (r AuditedRequest) Needs() Right {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return Right{User: r.User, Verb: r.Verb, Group: r.Group, Resource: resource, Namespace: r.Namespace}
}

// CompareRights returns the rights for want of which requests were refused, and those granted that no request took. A
// refusal of what is granted counts for nothing: an API server that starts refuses everything, for a moment.
func CompareRights(requests []AuditedRequest, granted []Right) (missing, superfluous []Right) {
	taken := make([]bool, len(granted))
	for _, request := range requests {
		needed, covered := request.Needs(), false
		for i, right := range granted {
			if !right.covers(needed) && !listedByWatch(right).covers(needed) {
				continue
			}
			taken[i] = true
			covered = covered || right.covers(needed)
		}
		refused := request.Code == http.StatusForbidden && request.Resource != ""
		if refused && !covered && !slices.Contains(missing, needed) {
			missing = append(missing, needed)
		}
	}
	for i, right := range granted {
		if !taken[i] {
			superfluous = append(superfluous, right)
		}
	}
	return missing, superfluous
}

// listedByWatch is the right by which a cache lists where the API server can; any other right is itself.
func listedByWatch(right Right) Right {
	if right.Verb == "list" {
		right.Verb = "watch"
	}
	return right
}

// CheckRights compares what all processes have asked of the API server with what their roles grant, and returns what is wrong, a
// sentence each: a refusal is a missing right, which is NeverForgiven, and a right without a request a superfluous one, if it is
// expected to be used. Superfluous ones are told in the long run alone: it takes every test to use every right. It stops the
// processes first: a watch is not in the record before it has ended.
func (e *Env) CheckRights(ctx context.Context, expected func(Right) bool) ([]string, error) {
	e.stopAll(Worker, FDBWorker, DrillWorker, Watcher)
	requests, err := e.Audit()
	if err != nil {
		return nil, err
	}
	var granted []Right
	roles := map[string]string{HoldfastWorker: HoldfastWorker, HoldfastWatcher: HoldfastWatcher}
	if e.options.FoundationDB {
		roles[HoldfastFDB], roles[HoldfastWatcher+"-fdb"] = HoldfastFDB, HoldfastWatcher
	}
	if e.options.Drills {
		roles[HoldfastDrills] = HoldfastDrills
	}
	for role, account := range roles {
		rights, err := e.rightsOf(ctx, role, account)
		if err != nil {
			return nil, err
		}
		granted = append(granted, rights...)
	}
	missing, superfluous := CompareRights(requests, granted)
	return wrongRights(missing, superfluous, func(right Right) bool { return sample.Whole() && expected(right) }), nil
}

func wrongRights(missing, superfluous []Right, expected func(Right) bool) []string {
	var wrong []string
	for _, right := range missing {
		wrong = append(wrong, fmt.Sprintf(NeverForgiven+"missing right: %s in namespace %q was refused", right, right.Namespace))
	}
	for _, right := range superfluous {
		if expected(right) {
			wrong = append(wrong, fmt.Sprintf("superfluous right: %s in namespace %q was never used by all of these tests",
				right, right.Namespace))
		}
	}
	return wrong
}

// rightsOf lists what generated roles of a name grant to a service account, everywhere and, where there is such a role, in the
// OADP namespace.
func (e *Env) rightsOf(ctx context.Context, role, account string) ([]Right, error) {
	cluster, local := &rbacv1.ClusterRole{}, &rbacv1.Role{}
	if err := e.client.Get(ctx, client.ObjectKey{Name: role}, cluster); err != nil {
		return nil, fmt.Errorf("get ClusterRole %s: %w", role, err)
	}
	err := e.client.Get(ctx, client.ObjectKey{Namespace: OADPNamespace, Name: role}, local)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get Role %s: %w", role, err)
	}
	return append(rightsIn(account, "", cluster.Rules), rightsIn(account, OADPNamespace, local.Rules)...), nil
}

func rightsIn(account, namespace string, rules []rbacv1.PolicyRule) []Right {
	var rights []Right
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights = append(rights, Right{User: account, Verb: verb, Group: group, Resource: resource, Namespace: namespace})
				}
			}
		}
	}
	return rights
}

// ForFoundationDB reports whether a right is one that only FoundationDB backups take.
func (r Right) ForFoundationDB() bool {
	switch {
	case r.User == HoldfastFDB, r.Group == fdbAPIGroup, r.Group == "apps.foundationdb.org":
		return true
	case r.User != HoldfastWatcher || r.Namespace != "":
		return false
	}
	return r.Group == "apps" || (r.Group == "" && r.Resource == "pods")
}
