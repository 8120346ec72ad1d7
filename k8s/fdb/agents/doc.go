// Package agents builds and judges the Deployment of a backup's agents: the processes that do the copying between a
// FoundationDB cluster and the object store. It does no I/O.
//
// # What a user may change
//
// spec.podTemplateSpec is merged into our pod template as kubectl would merge it: lists of containers, volumes and
// environment variables by name, everything else the user's where the user says something. As a whole the user's are: a
// volume or variable of a name of ours, so that it may be of another kind; what is said of a resource, so that no request of
// ours is above a limit; the pod's securityContext. An image without a tag gets the cluster's version.
//
// Our pods run as user and group 4059, which is "fdb" in the official images. Where the platform chooses users (OpenShift), set
// the pod's securityContext to {}.
//
// # What a user may not change
//
// What makes the pods the agents of this backup is refused with a *TemplateError: its label, both containers, the cluster
// file and how it comes there, and the credentials. FDB_BLOB_CREDENTIALS may name further files, for agents also work on the
// cluster's other backups; they come after ours, so that this backup's accounts are its own (FoundationDB takes the first
// file that has the account).
package agents
