// Package defaultplans gives namespaces the BackupPlans that the administrator's policy names for them.
//
// The worker registers its activity for the workflow DefaultPlans. It imports k8s, the policy and workflows/contract.
package defaultplans
