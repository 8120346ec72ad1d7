// Package planspec judges the spec of a BackupPlan by the administrator's policy.
//
// The activities of plans call it. It decides over plain values, and imports of ours k8s/policy and k8s/api.
package planspec
