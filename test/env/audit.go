package env

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"
)

// auditPolicy has the API server note what Holdfast's processes ask of it, without the bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: Metadata
    users:
      - system:serviceaccount:` + OADPNamespace + `:` + HoldfastWorker + `
      - system:serviceaccount:` + OADPNamespace + `:` + HoldfastWatcher + `
      - system:serviceaccount:` + OADPNamespace + `:` + HoldfastFDB + `
      - system:serviceaccount:` + OADPNamespace + `:` + HoldfastDrills + `
    omitManagedFields: true
  - level: None
`

// AuditedRequest is a request of one of Holdfast's processes that the API server has answered.
type AuditedRequest struct {
	// User is the service account's name, such as HoldfastWorker.
	User string
	// Verb is Kubernetes' own: get, list, watch, create, update, patch, delete.
	Verb                         string
	Group, Resource, Subresource string
	Namespace, Name              string
	// Code is the HTTP status of the answer.
	Code int
	At   time.Time
}

// Wrote reports whether the request was a write that the API server took.
func (r AuditedRequest) Wrote() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return r.Code < 300
	}
	return false
}

// Writes are those that were carried out. Of a write whose client gave up, which is answered 504, nobody knows; but it is
// repeated, and a repetition that finds it done does not succeed: so the last one that timed out counts, if none after it
// succeeded.
func Writes(requests []AuditedRequest) []AuditedRequest {
	type write struct{ user, verb, group, resource, subresource, namespace, name string }
	of := func(r AuditedRequest) write {
		return write{r.User, r.Verb, r.Group, r.Resource, r.Subresource, r.Namespace, r.Name}
	}
	var writes []AuditedRequest
	known := map[write]bool{} // from the latest to the earliest
	for _, r := range slices.Backward(requests) {
		switch {
		case r.Wrote():
			writes = append(writes, r)
			known[of(r)] = true
		case r.timedOut() && !known[of(r)]:
			writes = append(writes, r)
			known[of(r)] = true
		}
	}
	slices.Reverse(writes)
	return writes
}

func (r AuditedRequest) timedOut() bool {
	written := r
	written.Code = http.StatusOK
	return r.Code == http.StatusGatewayTimeout && written.Wrote()
}

func (e *Env) auditLog() string { return e.path("logs", "audit.jsonl") }

func (e *Env) auditArgs() ([]string, error) {
	if !e.options.Audit {
		return nil, nil
	}
	policy := e.path("pki", "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("write the audit policy: %w", err)
	}
	return []string{
		"--audit-policy-file=" + policy, "--audit-log-path=" + e.auditLog(),
		"--audit-log-maxsize=10000", // in megabytes: after 100 it would begin again, and hide what was asked before
	}, nil
}

// Audit returns what Holdfast's processes have asked of the API server so far, the oldest first. It needs
// Options.Audit. A request is there as soon as its answer has been sent.
func (e *Env) Audit() ([]AuditedRequest, error) {
	data, err := os.ReadFile(e.auditLog())
	if err != nil {
		return nil, fmt.Errorf("read the audit log (Options.Audit): %w", err)
	}
	var requests []AuditedRequest
	account := []byte("system:serviceaccount:" + OADPNamespace + ":")
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // being written
		}
		request, err := readAudited(line, account)
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		requests = append(requests, request)
	}
	return requests, nil
}

func readAudited(line, account []byte) (AuditedRequest, error) {
	var event struct {
		Verb string `json:"verb"`
		User struct {
			Username string `json:"username"`
		} `json:"user"`
		ObjectRef struct {
			APIGroup, Resource, Subresource, Namespace, Name string
		} `json:"objectRef"`
		ResponseStatus struct {
			Code int `json:"code"`
		} `json:"responseStatus"`
		StageTimestamp time.Time `json:"stageTimestamp"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return AuditedRequest{}, err
	}
	return AuditedRequest{
		User:  string(bytes.TrimPrefix([]byte(event.User.Username), account)),
		Verb:  event.Verb,
		Group: event.ObjectRef.APIGroup, Resource: event.ObjectRef.Resource, Subresource: event.ObjectRef.Subresource,
		Namespace: event.ObjectRef.Namespace, Name: event.ObjectRef.Name,
		Code: event.ResponseStatus.Code, At: event.StageTimestamp,
	}, nil
}
