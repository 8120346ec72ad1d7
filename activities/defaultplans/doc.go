// Package defaultplans gives namespaces the BackupPlans that the administrator's policy names for them.
//
// The worker registers its activity for the workflow DefaultPlans.
package defaultplans
