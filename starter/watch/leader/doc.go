// Package leader elects the one watcher, of several, that does the work of which one is enough, and says whether another one is
// seen to lead.
//
// Package watch calls it; starter makes the Lease. It knows the Lease and nothing of the leader's work.
package leader

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=openshift-adp,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=openshift-adp,resources=leases,resourceNames=holdfast-watcher,verbs=get;update
