// Package orphans decides what in the OADP namespace was made for an object of a tenant's that is gone, so that it may be
// deleted. A Velero Backup with data is never among it.
package orphans
