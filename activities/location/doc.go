// Package location acts on NonAdminBackupStorageLocations and their approval requests: it knows which objects belong to a
// location, whether its spec may be used, which spec is in force, what is made of it in the OADP namespace, and what its
// approval says.
//
// The worker registers Activities, for workflows/location and workflows/approval. The watcher calls Gather over its cache, and
// View; starter reads approvals and writes decisions by the same functions. It imports, of ours, activities,
// activities/backup, k8s and workflows/contract.
package location
