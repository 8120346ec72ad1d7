package contract

// MetricResourceTimeouts counts how often an activity was retried for all of --resource-timeout, tagged with activity_type.
// Workflows count it, through Temporal's handler, which does not count a replay. Other metrics are in k8s/metrics.
const MetricResourceTimeouts = "holdfast_resource_timeouts_total"

// Types of the application errors that activities return. A workflow, an operator's alert or a test may depend on them.
const (
	// ErrorPaused: another controller serves these kinds (Deployment non-admin-controller); Holdfast does not act. Retryable.
	ErrorPaused = "HoldfastPaused"
	// ErrorPolicyUnusable: the administrator's policy cannot be read or parsed, and no earlier one is known. Retryable.
	ErrorPolicyUnusable = "PolicyUnusable"
	// ErrorKubernetes: the API server refused or did not answer. Retryable.
	ErrorKubernetes = "KubernetesUnavailable"
	// ErrorAccessDenied: the API server answered Unauthorized or Forbidden; retried, since an API server that starts
	// answers so too, but an operator should check the RBAC. Retryable.
	ErrorAccessDenied = "KubernetesAccessDenied"
	// ErrorInvalidObject: the API server will never accept what was sent. Not retryable.
	ErrorInvalidObject = "InvalidObject"
)
