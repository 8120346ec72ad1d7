package requests

import (
	"fmt"

	"holdfast.dev/holdfast/workflows/contract"
)

// stranger stands for the users of a container whose names a tenant must not see.
const stranger = "somebody outside this namespace"

// UserName returns the name, for people, of a user of a container: its object, or the restore of it, with the Kubernetes
// cluster's ID.
func UserName(object, cluster string) string {
	return fmt.Sprintf("%s (Kubernetes cluster %s)", object, cluster)
}

// NameFor returns the name of another user as the requester may know it: its real name if it is of the same namespace of the same
// Kubernetes cluster, and otherwise one that says only that there is somebody. A requester without a place sees no real name.
func NameFor(requester, other contract.FDBContainerUser) string {
	if requester.Cluster == "" || requester.Namespace == "" ||
		requester.Cluster != other.Cluster || requester.Namespace != other.Namespace {
		return stranger
	}
	return other.Name
}
