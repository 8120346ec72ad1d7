// Package planspec judges the spec of a BackupPlan by the administrator's policy.
//
// The activities of plans call it. It decides over plain values.
package planspec
