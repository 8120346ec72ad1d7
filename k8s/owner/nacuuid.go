package owner

import (
	"strings"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	maxNameLength = 63                                     // a label value's limit: the name is used as a label too
	uuidLength    = 36                                     // as printed
	prefixRoom    = maxNameLength - uuidLength - 2         // for namespace and name, without the two hyphens
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

// Derived reports whether a name is the NACUUID of a tenant's object: no other object gets such a name.
func Derived(name, cluster string, of metav1.Object) bool {
	return name == NACUUID(cluster, of.GetNamespace(), of.GetName(), string(of.GetUID()))
}

// MayBeTenants reports whether a BackupStorageLocation of that name may have been made for a tenant: it ends as a NACUUID ends.
// So the location of an ordinary backup need not be read.
func MayBeTenants(name string) bool {
	if len(name) < uuidLength {
		return false
	}
	_, err := uuid.Parse(name[len(name)-uuidLength:])
	return err == nil
}

// MayBeOf reports whether a name that NACUUID gave may be that of an object of the namespace.
func MayBeOf(name, namespace string) bool {
	return strings.HasPrefix(name, namespace[:min(prefixRoom, len(namespace))]+"-")
}
