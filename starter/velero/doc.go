// Package velero is how `holdfast list` and `holdfast describe` show NonAdminBackups and NonAdminRestores.
//
// The command in package main lists what it offers. It imports, of ours, operator, k8s/api and workflows/contract.
package velero
