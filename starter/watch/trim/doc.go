// Package trim has the means to reduce objects to the parts that the watcher uses, so that tenants cannot fill its caches: a
// tenant may put a megabyte into any field of an object. A few kilobytes are left of each. What is kept of which kind stands
// beside that kind, in packages velero and fdb.
//
// A spec is used only to judge whether an object that is BackingOff would be refused today. A spec that is too large to be kept
// is replaced by its size, see OmittedBytes. All functions may be applied twice, as an informer does.
//
// Package caches and the kinds call it.
package trim
