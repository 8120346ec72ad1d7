package env

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
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
		"--audit-log-maxsize=10000", // in megabytes: after 100 it would begin anew, and hide what was asked before
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
