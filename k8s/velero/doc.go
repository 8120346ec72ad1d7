// Package velero knows what Velero's objects mean: the phases of a Backup and a Restore, their positions in Velero's queue, their
// volumes, the requests by which Velero deletes a backup or signs a URL for a file, and which object was made for a tenant.
//
// Everything but the workflows may call it. Finder, ReadVolumes, Stalled and WhyNotSigned do I/O, all else is pure.
package velero
