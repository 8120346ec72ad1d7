package env

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRightsAreComparedWhereTheyHold(t *testing.T) {
	in := func(verb, resource, namespace string) Right {
		return Right{User: "worker", Verb: verb, Group: "g", Resource: resource, Namespace: namespace}
	}
	asked := func(right Right, code int) AuditedRequest {
		return AuditedRequest{User: right.User, Verb: right.Verb, Group: right.Group, Resource: right.Resource, Namespace: right.Namespace, Code: code}
	}
	const ok, refused = http.StatusOK, http.StatusForbidden
	tests := map[string]struct {
		requests             []AuditedRequest
		granted              []Right
		missing, superfluous []Right
	}{
		"used": {
			requests: []AuditedRequest{asked(in("get", "a", "here"), ok), asked(in("get", "b", "there"), ok)},
			granted:  []Right{in("get", "a", "here"), in("get", "b", "")},
		},
		"granted in one namespace, refused in another": {
			requests: []AuditedRequest{
				asked(in("get", "a", "here"), ok), asked(in("get", "a", "there"), refused), asked(in("get", "a", "there"), refused),
			},
			granted: []Right{in("get", "a", "here")}, missing: []Right{in("get", "a", "there")},
		},
		"not granted at all": {
			requests: []AuditedRequest{asked(in("get", "a", "here"), refused)}, missing: []Right{in("get", "a", "here")},
		},
		"refused for a moment": {
			requests: []AuditedRequest{asked(in("get", "a", "here"), refused), asked(in("get", "b", "here"), refused)},
			granted:  []Right{in("get", "a", "here"), in("get", "b", "")},
		},
		"never used, or only elsewhere": {
			requests: []AuditedRequest{asked(in("get", "a", "there"), ok)},
			granted:  []Right{in("get", "b", ""), in("get", "a", ""), in("get", "a", "here")}, superfluous: []Right{in("get", "b", ""), in("get", "a", "here")},
		},
		"a cache that lists by its watch": {
			requests: []AuditedRequest{asked(in("watch", "a", ""), ok)},
			granted:  []Right{in("list", "a", ""), in("watch", "a", "")},
		},
		"a list that only its watch may": {
			requests: []AuditedRequest{asked(in("watch", "a", ""), refused)},
			granted:  []Right{in("list", "a", "")}, missing: []Right{in("watch", "a", "")},
		},
		"no resource": {requests: []AuditedRequest{{User: "worker", Verb: "get", Code: refused}}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			missing, superfluous := CompareRights(test.requests, test.granted)
			assert.Equal(t, test.missing, missing)
			assert.Equal(t, test.superfluous, superfluous)
		})
	}
}

func TestARequestNeedsItsSubresource(t *testing.T) {
	request := AuditedRequest{User: "worker", Verb: "patch", Group: "g", Resource: "a", Subresource: "status", Namespace: "here"}
	assert.Equal(t, Right{User: "worker", Verb: "patch", Group: "g", Resource: "a/status", Namespace: "here"}, request.Needs())
	assert.Equal(t, "worker patch g/a/status", request.Needs().String())
}

func TestAMissingRightIsNeverForgiven(t *testing.T) {
	of := func(verb string) Right {
		return Right{User: "worker", Verb: verb, Group: "g", Resource: "a", Namespace: "here"}
	}
	got := wrongRights([]Right{of("get")}, []Right{of("list"), of("watch")}, func(right Right) bool { return right.Verb == "watch" })
	assert.Equal(t, []string{
		`never forgiven: missing right: worker get g/a in namespace "here" was refused`,
		`superfluous right: worker watch g/a in namespace "here" was never used by all of these tests`,
	}, got)
}
