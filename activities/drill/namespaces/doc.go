// Package namespaces makes and deletes the namespaces of drills. To do so is a right over the whole cluster: the worker that
// registers it has an identity of its own, which an admission policy (deploy/components/drills) limits to the names and the
// label of drills.
//
// It reads no archive and no object store.
//
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;create;delete
// +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=get;create
// +kubebuilder:rbac:groups="",resources=limitranges,verbs=create
// +kubebuilder:rbac:groups="",resources=pods,verbs=create
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=list;create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=view,verbs=bind
// +kubebuilder:rbac:groups=holdfast.dev,resources=restoredrills,verbs=get
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=create
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list
// +kubebuilder:rbac:groups=apps,namespace=openshift-adp,resources=deployments,resourceNames=non-admin-controller,verbs=get
package namespaces
