// Package location knows NonAdminBackupStorageLocations: which objects belong to one, whether its spec may be used, which
// spec is in force, what is made of it in the OADP namespace, and what its approval needs next. It reads through a
// client.Reader and otherwise computes; it writes nothing.
package location
