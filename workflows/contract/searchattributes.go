package contract

import (
	"go.temporal.io/sdk/temporal"
)

// Search attributes are never encrypted: they hold names and phases, nothing else.
var (
	// AttributeCluster is the ID of the Kubernetes cluster (--cluster-id).
	AttributeCluster = temporal.NewSearchAttributeKeyKeyword("HoldfastCluster")
	// AttributeKind is the Kubernetes kind of the object served, for example NonAdminBackup.
	AttributeKind = temporal.NewSearchAttributeKeyKeyword("HoldfastKind")
	// AttributeNamespace is the tenant's namespace.
	AttributeNamespace = temporal.NewSearchAttributeKeyKeyword("HoldfastNamespace")
	// AttributeName is the object's name.
	AttributeName = temporal.NewSearchAttributeKeyKeyword("HoldfastName")
	// AttributePhase is the object's status.phase.
	AttributePhase = temporal.NewSearchAttributeKeyKeyword("HoldfastPhase")
	// AttributeVeleroPhase is the phase of the Velero object made for it.
	AttributeVeleroPhase = temporal.NewSearchAttributeKeyKeyword("HoldfastVeleroPhase")
)

// SearchAttributeNames lists all search attributes, each of type Keyword, in the order in which they are registered.
func SearchAttributeNames() []string {
	return []string{
		AttributeCluster.GetName(), AttributeKind.GetName(), AttributeNamespace.GetName(), AttributeName.GetName(),
		AttributePhase.GetName(), AttributeVeleroPhase.GetName(),
	}
}
