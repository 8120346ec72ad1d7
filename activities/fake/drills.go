package fake

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/activities/digests"
	"holdfast.dev/holdfast/activities/drill"
	"holdfast.dev/holdfast/activities/drill/gather"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
)

// Drills returns the activities that serve drills, over this world and a folder that stands for the bucket of every location.
// now is the time, that of the machine if nil.
func (w *World) Drills(folder string, now func() time.Time) *drill.Activities {
	return &drill.Activities{
		Cluster:  w.Backups.Cluster,
		Gatherer: &gather.Gatherer{Reader: w.Client, ClusterID: Cluster, OADPNamespace: OADPNamespace, Now: now},
		Restores: w.Restores.Gatherer, Buckets: w.Restores.Buckets, Stores: w.stores(folder),
		Digests: &digests.Sets{Cluster: w.cluster, OADPNamespace: OADPNamespace},
	}
}

// Digests returns the activities that record digests, over this world and a folder that stands for the bucket of every location.
// now is the time, that of the machine if nil.
func (w *World) Digests(folder string, now func() time.Time) *digests.Activities {
	return &digests.Activities{
		Sets:    digests.Sets{Cluster: w.cluster, OADPNamespace: OADPNamespace},
		Backups: w.Backups.Gatherer, Stores: w.stores(folder), Now: now,
	}
}

// Drill returns a RestoreDrill of a NonAdminBackup, with the defaults that the API server sets. It is not in the world yet.
func Drill(name, backup string) *holdfastv1alpha1.RestoreDrill {
	return &holdfastv1alpha1.RestoreDrill{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec:       holdfastv1alpha1.RestoreDrillSpec{BackupName: backup, Timeout: "30m", KeepOnFailure: "0s"},
	}
}

// ReadDrill returns the RestoreDrill of that name, nil if there is none.
func (w *World) ReadDrill(name string) *holdfastv1alpha1.RestoreDrill {
	return got(w, types.NamespacedName{Namespace: Namespace, Name: name}, &holdfastv1alpha1.RestoreDrill{})
}
