package env

import (
	"net/http"
	"slices"
)

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
