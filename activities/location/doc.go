// Package location acts on NonAdminBackupStorageLocations and their approval requests. It knows which objects belong to a
// location, whether its spec may be used, which spec is in force, what is made of it in the OADP namespace, and what a decision
// writes.
//
// The worker registers Activities, for workflows/location and workflows/approval. The watcher calls Gather over its cache, and
// View; starter/location writes decisions by the same functions.
package location
