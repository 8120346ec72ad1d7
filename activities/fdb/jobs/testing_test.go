package jobs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"holdfast.dev/holdfast/activities/fdb/jobs"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	version = "7.3.63"
	// began is when the turns of these tests begin.
	began int64 = 1_795_000_000
)

var ref = contract.ObjectRef{Namespace: "team-a", Name: "nightly", UID: "uid-1"}

// backup returns an object with this pod template in JSON; without one if it is empty.
func backup(template string) *fdbv1alpha1.FoundationDBBackup {
	object := &fdbv1alpha1.FoundationDBBackup{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "team-a", UID: "uid-1"},
		Spec: fdbv1alpha1.FoundationDBBackupSpec{
			ClusterName: "prod", BackupType: fdbv1alpha1.BackupTypeAgent,
			Credentials: fdbv1alpha1.CredentialsReference{SecretName: "store", Key: "blob.json"},
		},
	}
	if template != "" {
		object.Spec.PodTemplateSpec = &runtime.RawExtension{Raw: []byte(template)}
	}
	return object
}

// url returns a container's URL.
func url(name string) string { return "blobstore://lab@s3.local/" + name + "?bucket=fdb-backups" }

func place(name string) contract.FDBPlace {
	return contract.FDBPlace{URL: url(name), Container: "s3.local:443/fdb-backups/" + name}
}

func expireStep() contract.FDBPodStep {
	return contract.FDBPodStep{Ref: ref, Turn: began, Number: 1, Job: contract.FDBJobExpire, Expire: &contract.FDBExpire{
		FDBPlace: place("a"), Before: began - 3600, RestorableAfter: began - 60,
	}}
}

func deleteStep() contract.FDBPodStep {
	return contract.FDBPodStep{
		Ref: ref, Turn: began, Number: 1, Job: contract.FDBJobDelete, Delete: []contract.FDBPlace{place("a"), place("b")},
	}
}

func build(t *testing.T, template string, step contract.FDBPodStep) *corev1.Pod {
	t.Helper()
	pod, err := jobs.Pod(backup(template), version, step, time.Hour)
	require.NoError(t, err)
	return pod
}
