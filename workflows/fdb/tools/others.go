package tools

import (
	"fmt"

	"holdfast.dev/holdfast/workflows/contract"
)

// stranger is what a tenant learns of those that use the same container from elsewhere.
const stranger = "somebody outside this namespace"

// UserName is how people call what uses a container: its object, or the restore of it, with the Kubernetes cluster's ID.
func UserName(object, cluster string) string {
	return fmt.Sprintf("%s (Kubernetes cluster %s)", object, cluster)
}

// NameFor is what the people of a user's namespace may know of another user: its name if it is of the same namespace of the same
// Kubernetes cluster, and otherwise that there is somebody. Who does not say where it is knows of nobody.
func NameFor(requester, other contract.FDBContainerUser) string {
	if requester.Cluster == "" || requester.Namespace == "" ||
		requester.Cluster != other.Cluster || requester.Namespace != other.Namespace {
		return stranger
	}
	return other.Name
}
