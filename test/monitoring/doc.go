// Package monitoring checks what an operator watches Holdfast by: the metrics, the alert rules and the dashboard of
// deploy/monitoring.
package monitoring
