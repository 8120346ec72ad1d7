package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

func TestBackupCompletes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 63)
	tests := map[string]struct {
		name    string
		objects int
		changes []change
		check   func(t *testing.T, nab *oadpv1alpha1.NonAdminBackup, made *velerov1.Backup)
	}{
		"plain": {name: "plain"},
		"with a label selector": {
			name: "selected",
			changes: []change{withSpec(func(spec *velerov1.BackupSpec) {
				spec.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"nobody": "has-this"}}
			})},
			check: func(t *testing.T, nab *oadpv1alpha1.NonAdminBackup, _ *velerov1.Backup) {
				require.NotNil(t, nab.Status.VeleroBackup.Status.Progress)
				assert.LessOrEqual(t, nab.Status.VeleroBackup.Status.Progress.ItemsBackedUp, 1, "the namespace alone")
			},
		},
		"of 300 objects": {
			name: "many", objects: 300,
			check: func(t *testing.T, nab *oadpv1alpha1.NonAdminBackup, _ *velerov1.Backup) {
				assert.GreaterOrEqual(t, nab.Status.VeleroBackup.Status.Progress.ItemsBackedUp, 300)
			},
		},
		"named to the 63-character limit": {
			name: long,
			check: func(t *testing.T, _ *oadpv1alpha1.NonAdminBackup, made *velerov1.Backup) {
				assert.Len(t, made.Name, 63)
			},
		},
		"named to Kubernetes' limit, which Temporal cannot hold": {name: strings.Repeat("n", 253)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTenant(t, "alice")
			if test.objects > 0 {
				require.NoError(t, stack.Seed(t.Context(), x.namespace, test.objects))
			}
			nab := x.awaitVeleroPhase(x.backUp(test.name, test.changes...), velerov1.BackupPhaseCompleted)

			made := veleroBackup(t, nab.Status.VeleroBackup.Name)
			require.NotNil(t, made)
			checkFinished(t, nab, made)
			if test.check != nil {
				test.check(t, nab, made)
			}
			awaitEnd(t, nab)
		})
	}
}

// checkFinished compares a completed backup with what docs/tenants.md states.
func checkFinished(t *testing.T, nab *oadpv1alpha1.NonAdminBackup, made *velerov1.Backup) {
	t.Helper()
	assert.Equal(t, oadpv1alpha1.NonAdminPhaseCreated, nab.Status.Phase)
	assert.Equal(t, "BackupAccepted", condition(nab, oadpv1alpha1.NonAdminConditionAccepted).Reason)
	assert.Equal(t, "Created Velero Backup object", condition(nab, oadpv1alpha1.NonAdminConditionQueued).Message)
	require.NotNil(t, nab.Status.QueueInfo)
	assert.Zero(t, nab.Status.QueueInfo.EstimatedQueuePosition)
	assert.Equal(t, made.Name, nab.Status.VeleroBackup.NACUUID)
	assert.Equal(t, env.OADPNamespace, nab.Status.VeleroBackup.Namespace)
	assert.NotNil(t, nab.Status.VeleroBackup.Status.CompletionTimestamp)
	assert.Contains(t, nab.Finalizers, oadpv1alpha1.NabFinalizer)

	assert.Equal(t, []string{nab.Namespace}, made.Spec.IncludedNamespaces)
	assert.Contains(t, made.Spec.ExcludedResources, "nonadminbackups")
	assert.Equal(t, made.Name, made.Labels[oadpv1alpha1.NabOriginNACUUIDLabel])
	assert.Equal(t, nab.Name, made.Annotations[oadpv1alpha1.NabOriginNameAnnotation])
	assert.Len(t, veleroBackupsOf(t, nab.Namespace), 1, "exactly one Velero Backup")
	assert.NotZero(t, files(t, made.Name), "files in the bucket")
}

func TestInvalidSpecBacksOff(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "alice")
	nab := x.backUp("greedy", withSpec(func(spec *velerov1.BackupSpec) {
		spec.IncludedNamespaces = []string{x.namespace, "kube-system"}
	}))
	accepted := x.awaitCondition(nab, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonInvalidBackupSpec)
	assert.Contains(t, accepted.Message, "can not contain namespaces other than: "+x.namespace)
	seen := x.await(nab, "BackingOff", func(now *oadpv1alpha1.NonAdminBackup) bool {
		return now.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff
	})
	assert.Empty(t, seen.Finalizers, "nothing to protect")
	assert.Empty(t, veleroBackupsOf(t, x.namespace))

	x.patch(nab, `{"spec":{"backupSpec":{"includedNamespaces":null}}}`)
	x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)
	awaitEnd(t, nab)
}

func TestEditAfterCreationChangesTheConditionOnly(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "alice")
	nab := x.backUp("edited")
	done := x.awaitVeleroPhase(nab, velerov1.BackupPhaseCompleted)

	x.patch(nab, `{"spec":{"backupSpec":{"excludedNamespaces":["other"]}}}`)
	x.awaitCondition(nab, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonInvalidBackupSpec)
	x.patch(nab, `{"spec":{"backupSpec":{"excludedNamespaces":null}}}`)
	x.awaitCondition(nab, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonBackupAccepted)

	after := x.await(nab, "still Created", func(now *oadpv1alpha1.NonAdminBackup) bool {
		return now.Status.Phase == oadpv1alpha1.NonAdminPhaseCreated
	})
	assert.Equal(t, done.Status.VeleroBackup, after.Status.VeleroBackup)
	awaitEnd(t, nab)
}

func TestAStorageLocationThatIsNotThere(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "dave")
	nab := x.backUp("elsewhere", withSpec(func(spec *velerov1.BackupSpec) { spec.StorageLocation = "elsewhere" }))
	accepted := x.awaitCondition(nab, oadpv1alpha1.NonAdminConditionAccepted, oadpv1alpha1.ReasonInvalidBackupSpec)
	assert.Contains(t, accepted.Message, "NonAdminBackupStorageLocation not found in the namespace")
	awaitEnd(t, nab)
}
