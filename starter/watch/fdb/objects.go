package fdb

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/trim"
)

// fdbBackups are cached without what only the worker reads of a spec: the pod template has no size limit, and there may be a
// hundred ranges.
var fdbBackups = caches.New(caches.Kind{
	Keys:       []string{fdbv1alpha1.AnnotationClusterVersion},
	Finalizers: []string{fdbv1alpha1.FinalizerStop, fdbv1alpha1.FinalizerDelete},
}, func(kept, of *fdbv1alpha1.FoundationDBBackup) {
	kept.Spec = fdbv1alpha1.FoundationDBBackupSpec{
		ClusterName: trim.Name(of.Spec.ClusterName), BackupState: of.Spec.BackupState, Credentials: credentials(of.Spec.Credentials),
		Expiry: fdbv1alpha1.BackupExpiry{DeletionFinalizer: of.Spec.Expiry.DeletionFinalizer},
	}
	kept.Status = fdbv1alpha1.FoundationDBBackupStatus{
		UID: trim.Name(of.Status.UID), ObservedGeneration: of.Status.ObservedGeneration, Reconciled: of.Status.Reconciled,
		Conditions: trim.Reasons(of.Status.Conditions),
	}
	for _, each := range trim.Last(of.Status.Backups) {
		kept.Status.Backups = append(kept.Status.Backups, fdbv1alpha1.BackupDetails{
			URL: trim.Text(each.URL), State: trim.Name(each.State), LatestRestorable: each.LatestRestorable,
		})
	}
})

func credentials(of fdbv1alpha1.CredentialsReference) fdbv1alpha1.CredentialsReference {
	return fdbv1alpha1.CredentialsReference{SecretName: trim.Name(of.SecretName), Key: trim.Name(of.Key)}
}

var fdbRestores = caches.New(caches.Kind{Finalizers: []string{fdbv1alpha1.FinalizerAbort}},
	func(kept, of *fdbv1alpha1.FoundationDBRestore) {
		kept.Spec = fdbv1alpha1.FoundationDBRestoreSpec{
			BackupName: trim.Name(of.Spec.BackupName), RestoreState: of.Spec.RestoreState,
			DestinationClusterName: trim.Name(of.Spec.DestinationClusterName), SourceClusterName: trim.Name(of.Spec.SourceClusterName),
		}
		if of.Spec.Credentials != nil {
			named := credentials(*of.Spec.Credentials)
			kept.Spec.Credentials = &named
		}
		if by := maker(of); by != nil {
			kept.OwnerReferences = []metav1.OwnerReference{*by}
		}
		kept.Status = fdbv1alpha1.FoundationDBRestoreStatus{
			ObservedGeneration: of.Status.ObservedGeneration, State: trim.Name(of.Status.State),
		}
	})

// Clusters are the FoundationDBClusters. They have a cache of their own, see ClusterCache.
var Clusters = caches.New(caches.Kind{}, func(kept, of *foundationdbv1beta2.FoundationDBCluster) {
	kept.Spec.Version, kept.Status.RunningVersion = trim.Name(of.Spec.Version), trim.Name(of.Status.RunningVersion)
	kept.Status.ConnectionString = trim.Text(of.Status.ConnectionString)
})

// expiryPods are the pods that expire and delete backups; their state is cached.
var expiryPods = caches.New(caches.Kind{Labelled: fdbv1alpha1.LabelExpiry, Keys: []string{fdbv1alpha1.LabelExpiry}},
	func(kept, of *corev1.Pod) {
		kept.OwnerReferences = owners(of.OwnerReferences)
		kept.Status.Phase, kept.Status.Reason = of.Status.Phase, trim.Name(of.Status.Reason)
		kept.Status.ContainerStatuses = containers(of.Status.ContainerStatuses)
		kept.Status.InitContainerStatuses = containers(of.Status.InitContainerStatuses)
	})

func containers(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for _, each := range trim.Last(all) {
		state := *each.State.DeepCopy()
		if waiting := state.Waiting; waiting != nil {
			waiting.Reason, waiting.Message = trim.Name(waiting.Reason), trim.Name(waiting.Message)
		}
		if ended := state.Terminated; ended != nil {
			ended.Reason, ended.Message = trim.Name(ended.Reason), trim.Name(ended.Message)
			ended.ContainerID = trim.Name(ended.ContainerID)
		}
		kept = append(kept, corev1.ContainerStatus{Name: trim.Name(each.Name), State: state})
	}
	return kept
}

// agents are the Deployments of backup agents; the progress of a rollout is cached.
var agents = caches.New(caches.Kind{Labelled: fdbv1alpha1.LabelBackup, Keys: []string{fdbv1alpha1.LabelBackup}},
	func(kept, of *appsv1.Deployment) {
		kept.OwnerReferences = owners(of.OwnerReferences)
		kept.Status = of.Status
		kept.Status.Conditions = nil
	})

// owners keeps the FoundationDBBackup that a pod or a Deployment was made for.
func owners(all []metav1.OwnerReference) []metav1.OwnerReference {
	for _, owner := range all {
		version, err := schema.ParseGroupVersion(owner.APIVersion)
		if err == nil && version.Group == fdbv1alpha1.GroupVersion.Group && owner.Kind == fdbv1alpha1.KindFoundationDBBackup &&
			max(len(owner.APIVersion), len(owner.Name), len(owner.UID)) <= trim.NameBytes {
			return []metav1.OwnerReference{{
				APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID, Controller: owner.Controller,
			}}
		}
	}
	return nil
}
