package env

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A client that gives up does not know whether its write was carried out: its next attempt finds out.
func TestWritesThatTimedOut(t *testing.T) {
	request := func(verb, name string, code int) AuditedRequest {
		return AuditedRequest{Verb: verb, Name: name, Code: code}
	}
	for title, test := range map[string]struct{ requests, want []AuditedRequest }{
		"done, as the next attempt finds": {
			[]AuditedRequest{request("create", "a", 504), request("create", "a", 409)}, []AuditedRequest{request("create", "a", 504)},
		},
		"not done": {
			[]AuditedRequest{request("create", "a", 504), request("create", "a", 201)}, []AuditedRequest{request("create", "a", 201)},
		},
		"done, and done once more later": {
			[]AuditedRequest{request("patch", "a", 200), request("patch", "a", 504)},
			[]AuditedRequest{request("patch", "a", 200), request("patch", "a", 504)},
		},
		"twice": {
			[]AuditedRequest{request("delete", "a", 504), request("delete", "a", 504), request("delete", "a", 404)},
			[]AuditedRequest{request("delete", "a", 504)},
		},
		"of another object": {
			[]AuditedRequest{request("create", "a", 504), request("create", "b", 201)},
			[]AuditedRequest{request("create", "a", 504), request("create", "b", 201)},
		},
		"a read":  {[]AuditedRequest{request("get", "a", 504)}, nil},
		"refused": {[]AuditedRequest{request("create", "a", 403)}, nil},
	} {
		t.Run(title, func(t *testing.T) { assert.Equal(t, test.want, Writes(test.requests)) })
	}
}
