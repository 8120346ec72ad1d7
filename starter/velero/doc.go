// Package velero lists and describes NonAdminBackups and NonAdminRestores.
//
// starter has its values in the list of kinds. It imports, of ours, starter/operator, k8s/api and workflows/contract.
package velero
