// Package velero is how `holdfast list` and `holdfast describe` show NonAdminBackups and NonAdminRestores.
//
// The command in package main lists what it offers.
package velero
