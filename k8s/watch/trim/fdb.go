package trim

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
)

// fdbBackup drops what only the worker reads of a spec: the pod template has no size limit, and there may be a hundred ranges.
func fdbBackup(of *fdbv1alpha1.FoundationDBBackup) *fdbv1alpha1.FoundationDBBackup {
	kept := &fdbv1alpha1.FoundationDBBackup{TypeMeta: of.TypeMeta, ObjectMeta: trimmed(of.ObjectMeta)}
	kept.Spec = fdbv1alpha1.FoundationDBBackupSpec{
		ClusterName: name(of.Spec.ClusterName), BackupState: of.Spec.BackupState, Credentials: credentials(of.Spec.Credentials),
		Expiry: fdbv1alpha1.BackupExpiry{DeletionFinalizer: of.Spec.Expiry.DeletionFinalizer},
	}
	kept.Status = fdbv1alpha1.FoundationDBBackupStatus{
		ObservedGeneration: of.Status.ObservedGeneration, Reconciled: of.Status.Reconciled,
	}
	for _, each := range last(of.Status.Conditions) {
		each.Type, each.Reason, each.Message = name(each.Type), name(each.Reason), ""
		kept.Status.Conditions = append(kept.Status.Conditions, each)
	}
	for _, each := range last(of.Status.Backups) {
		kept.Status.Backups = append(kept.Status.Backups, fdbv1alpha1.BackupDetails{
			URL: text(each.URL), State: name(each.State), LatestRestorable: each.LatestRestorable,
		})
	}
	return kept
}

func credentials(of fdbv1alpha1.CredentialsReference) fdbv1alpha1.CredentialsReference {
	return fdbv1alpha1.CredentialsReference{SecretName: name(of.SecretName), Key: name(of.Key)}
}

func fdbRestore(of *fdbv1alpha1.FoundationDBRestore) *fdbv1alpha1.FoundationDBRestore {
	kept := &fdbv1alpha1.FoundationDBRestore{TypeMeta: of.TypeMeta, ObjectMeta: trimmed(of.ObjectMeta)}
	kept.Spec = fdbv1alpha1.FoundationDBRestoreSpec{
		BackupName: name(of.Spec.BackupName), RestoreState: of.Spec.RestoreState,
		DestinationClusterName: name(of.Spec.DestinationClusterName), SourceClusterName: name(of.Spec.SourceClusterName),
	}
	if of.Spec.Credentials != nil {
		named := credentials(*of.Spec.Credentials)
		kept.Spec.Credentials = &named
	}
	kept.Status = fdbv1alpha1.FoundationDBRestoreStatus{
		ObservedGeneration: of.Status.ObservedGeneration, State: fdbv1alpha1.ObservedRestoreState(name(string(of.Status.State))),
	}
	return kept
}

func fdbCluster(of *foundationdbv1beta2.FoundationDBCluster) *foundationdbv1beta2.FoundationDBCluster {
	kept := &foundationdbv1beta2.FoundationDBCluster{TypeMeta: of.TypeMeta, ObjectMeta: trimmed(of.ObjectMeta)}
	kept.Spec.Version, kept.Status.RunningVersion = name(of.Spec.Version), name(of.Status.RunningVersion)
	kept.Status.ConnectionString = text(of.Status.ConnectionString)
	return kept
}

// pod keeps the state of a pod.
func pod(of *corev1.Pod) *corev1.Pod {
	kept := &corev1.Pod{TypeMeta: of.TypeMeta, ObjectMeta: trimmed(of.ObjectMeta)}
	kept.OwnerReferences = owners(of.OwnerReferences)
	kept.Status.Phase, kept.Status.Reason = of.Status.Phase, name(of.Status.Reason)
	kept.Status.ContainerStatuses = containers(of.Status.ContainerStatuses)
	kept.Status.InitContainerStatuses = containers(of.Status.InitContainerStatuses)
	return kept
}

func containers(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for _, each := range last(all) {
		state := *each.State.DeepCopy()
		if waiting := state.Waiting; waiting != nil {
			waiting.Reason, waiting.Message = name(waiting.Reason), name(waiting.Message)
		}
		if ended := state.Terminated; ended != nil {
			ended.Reason, ended.Message, ended.ContainerID = name(ended.Reason), name(ended.Message), name(ended.ContainerID)
		}
		kept = append(kept, corev1.ContainerStatus{Name: name(each.Name), State: state})
	}
	return kept
}

// deployment keeps the progress of a rollout.
func deployment(of *appsv1.Deployment) *appsv1.Deployment {
	kept := &appsv1.Deployment{TypeMeta: of.TypeMeta, ObjectMeta: trimmed(of.ObjectMeta)}
	kept.OwnerReferences = owners(of.OwnerReferences)
	kept.Status = of.Status
	kept.Status.Conditions = nil
	return kept
}
