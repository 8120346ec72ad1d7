// Package gather reads what concerns one FoundationDBBackup: its cluster, credentials and agents. It makes the view by which
// workflows decide, and writes the workflows' findings into the object in memory. It decides which changes are worth an Event.
//
// Gather reads through a client.Reader: the API server in the activities, the cache in the watcher. All else is a pure function.
// The activities of FoundationDB and starter/watch/fdb call it.
package gather

// +kubebuilder:rbac:groups=fdb.holdfast.dev,resources=foundationdbbackups,verbs=get
// +kubebuilder:rbac:groups=apps.foundationdb.org,resources=foundationdbclusters,verbs=get
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
