package k8s

import (
	"strings"

	"github.com/google/uuid"
)

const (
	maxNameLength = 63                                     // a label value's limit: the name is used as a label too
	uuidLength    = 36                                     // as printed
	prefixRoom    = maxNameLength - uuidLength - 2         // left for namespace and name, two hyphens taken off
	uuidNamespace = "5e2d5cb4-6ab7-5b3e-9a0c-5a6d0c1f7e11" // fixed for ever: changing it renames every object to come
)

// NACUUID returns the name of the Velero object made for a tenant's object, which is also its origin label's value:
// `<namespace>-<name>-<uuid>` in at most 63 characters, by the naming rule of the OADP non-admin controller (a
// namespace over 25 characters is cut to 25 and the name dropped; else the name is cut to what is left). A dot that the
// cut leaves at the end of the name goes too: no object's name may hold ".-".
//
// The UUID is derived (version 5) from the cluster's ID and the object's UID: the name is known before anything is
// written, and making the object twice is impossible.
func NACUUID(cluster, namespace, name, uid string) string {
	suffix := uuid.NewSHA1(uuid.MustParse(uuidNamespace), []byte(cluster+"/"+uid)).String()
	if len(namespace) >= prefixRoom {
		return namespace[:prefixRoom] + "-" + suffix
	}
	room := prefixRoom - len(namespace)
	return namespace + "-" + strings.TrimRight(name[:min(room, len(name))], ".") + "-" + suffix
}
