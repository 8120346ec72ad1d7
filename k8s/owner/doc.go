// Package owner says whose an object of the OADP namespace is: for which tenant's object it was made. It decides by labels,
// annotations, names, a UID and the storage location that holds a backup, over plain values: it reads nothing, so anything may
// import it. Nothing else reads these labels and annotations or compares the names that follow from them; a test keeps it so.
//
// Tenants cannot write into the OADP namespace. But Velero brings into it what it finds in a tenant's bucket, and the status and
// the labels of a tenant's own object are the tenant's to write. Hence five strengths, from the weakest to the strongest:
//
//   - What a tenant's object says of itself (Claimed, Claims, Written, SyncedFrom) proves nothing. It is a name to look under.
//   - A hint (Hint, UID, MayBeTenants, MayBeOf) says what an event may concern, and what need not be read. Enough to wake a
//     workflow, which reads for itself.
//   - What names the tenant's object (Names, Named; of a backup's location MayHold, Tenants) may be read, mirrored and shown,
//     and deleted at that tenant's wish.
//   - What is called as it was given (Called), for that object and no other of its name (MadeFor, ForAnother), may hold a
//     tenant's keys and backups.
//   - What is proven (Proven, Derived) may be deleted though nobody asks for it, be made a tenant's object of, and be entered in
//     the ledger of what was released.
//
// Who asks for which, and why:
//
//	k8s/watch                     Hint; location_events Called, since it makes up a reference by the UID
//	k8s/watch/queue               Names: it writes a status by what the object says
//	k8s/backup, k8s/restore       Claimed to look, Names before anything else; backups MayHold too, since they come from buckets
//	k8s/backup (released)         the Velero Backup's Names, or Derived where that is gone
//	k8s/download, k8s/finalize    Names, Named; Tenants and MayHold, since a URL is signed with the location's keys
//	k8s/policy, k8s/location      Claimed to look, Called before a location is used, changed, or deleted
//	k8s/synchronize               Proven backups, in a location that is MadeFor its owner: a tenant's object is made of them
//	k8s/orphans                   Proven, and gone or ForAnother: nobody asks for the deletion
package owner
