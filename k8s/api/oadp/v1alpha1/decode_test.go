package v1alpha1_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// decode reads an object like a client that lists or watches.
func decode[T runtime.Object](t *testing.T, document string) T {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, oadpv1alpha1.AddToScheme(scheme))
	object, _, err := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode([]byte(document), nil, nil)
	require.NoError(t, err)
	typed, ok := object.(T)
	require.True(t, ok, "decoded a %T", object)
	return typed
}

func TestOneTenantsUnreadableObjectDoesNotHideTheOthers(t *testing.T) {
	list := decode[*oadpv1alpha1.NonAdminBackupList](t, `{
		"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackupList", "metadata": {"resourceVersion": "7"},
		"items": [
			{"metadata": {"namespace": "team-a", "name": "good"}, "spec": {"backupSpec": {"ttl": "1h0m0s"}}},
			{"metadata": {"namespace": "team-b", "name": "bad"}, "spec": {"deleteBackup": true, "backupSpec": {"ttl": "banana"}},
			 "status": {"phase": "BackingOff", "veleroBackup": {"nacuuid": "u", "name": "n", "status": {"phase": {"a": 1}}}}}
		]}`)
	require.Len(t, list.Items, 2)
	good, bad := list.Items[0], list.Items[1]
	require.Equal(t, "1h0m0s", good.Spec.BackupSpec.TTL.Duration.String())
	require.Empty(t, good.Spec.Unreadable)

	require.Equal(t, "bad", bad.Name)
	require.Nil(t, bad.Spec.BackupSpec)
	require.Equal(t, `ttl: time: invalid duration "banana"`, bad.Spec.Unreadable)
	require.True(t, bad.Spec.DeleteBackup, "what is readable still counts")
	require.Equal(t, oadpv1alpha1.NonAdminPhaseBackingOff, bad.Status.Phase)
	require.Equal(t, &oadpv1alpha1.VeleroBackup{NACUUID: "u", Name: "n"}, bad.Status.VeleroBackup)
}

func TestUnreadableSpecsSayWhichFieldIsWrong(t *testing.T) {
	tests := map[string]struct{ spec, want string }{
		"a duration that is none":      {`{"csiSnapshotTimeout": "soon"}`, `csiSnapshotTimeout: time: invalid duration "soon"`},
		"a duration without a unit":    {`{"itemOperationTimeout": "90"}`, `itemOperationTimeout: time: missing unit in duration "90"`},
		"the first of several by name": {`{"ttl": "x", "csiSnapshotTimeout": "y"}`, `csiSnapshotTimeout: time: invalid duration "y"`},
		"a hook's timeout": {
			`{"hooks": {"resources": [{"name": "h", "pre": [{"exec": {"command": ["a"], "timeout": "x"}}]}]}}`,
			`hooks: time: invalid duration "x"`,
		},
		"a number beyond all bounds": {
			`{"uploaderConfig": {"parallelFilesUpload": 99999999999999999999}}`,
			"uploaderConfig.parallelFilesUpload must be of type int, not number 99999999999999999999",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var spec oadpv1alpha1.NonAdminBackupSpec
			require.NoError(t, json.Unmarshal([]byte(`{"backupSpec": `+tt.spec+`}`), &spec))
			require.Nil(t, spec.BackupSpec)
			require.Equal(t, tt.want, spec.Unreadable)
			require.Equal(t, spec, *spec.DeepCopy())

			written, err := json.Marshal(spec)
			require.NoError(t, err)
			require.JSONEq(t, `{"backupSpec": null}`, string(written), "the reason must not be written")
		})
	}
}

func TestOtherKindsDecodeWhateverTheAPIServerAccepts(t *testing.T) {
	restore := decode[*oadpv1alpha1.NonAdminRestore](t, `{
		"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminRestore", "metadata": {"name": "r"},
		"spec": {"restoreSpec": {"backupName": "b", "itemOperationTimeout": "x"}},
		"status": {"phase": "New", "veleroRestore": {"name": "n", "status": {"warnings": "many"}}}}`)
	require.Equal(t, `itemOperationTimeout: time: invalid duration "x"`, restore.Spec.Unreadable)
	require.Equal(t, &oadpv1alpha1.VeleroRestore{Name: "n"}, restore.Status.VeleroRestore)

	location := decode[*oadpv1alpha1.NonAdminBackupStorageLocation](t, `{
		"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackupStorageLocation", "metadata": {"name": "l"},
		"spec": {"backupStorageLocationSpec": {"provider": "aws", "backupSyncPeriod": "x", "objectStorage": {"bucket": "b"}}},
		"status": {"phase": "New", "veleroBackupStorageLocation": {"name": "n", "status": {"lastSyncedTime": "never"}}}}`)
	require.Equal(t, `backupSyncPeriod: time: invalid duration "x"`, location.Spec.Unreadable)
	require.Equal(t, &oadpv1alpha1.VeleroBackupStorageLocation{Name: "n"}, location.Status.VeleroBackupStorageLocation)

	download := decode[*oadpv1alpha1.NonAdminDownloadRequest](t, `{
		"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminDownloadRequest", "metadata": {"name": "d"},
		"spec": {"target": {"kind": "BackupLog", "name": "b"}},
		"status": {"phase": "New", "velero": {"status": {"expiration": "never"}}}}`)
	require.Nil(t, download.Status.VeleroDownloadRequest.Status)
	require.Equal(t, oadpv1alpha1.NonAdminPhaseNew, download.Status.Phase)
	require.Equal(t, "b", download.Spec.Target.Name)

	backup := decode[*oadpv1alpha1.NonAdminBackup](t, `{
		"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup", "metadata": {"name": "b"},
		"spec": {"backupSpec": {}},
		"status": {"phase": "New", "queueInfo": {"estimatedQueuePosition": 1e30},
			"veleroDeleteBackupRequest": {"name": "n", "status": {"errors": "none"}}}}`)
	require.Nil(t, backup.Status.QueueInfo)
	require.Equal(t, &oadpv1alpha1.VeleroDeleteBackupRequest{Name: "n"}, backup.Status.VeleroDeleteBackupRequest)
}

func TestAReadableObjectSurvivesARoundTrip(t *testing.T) {
	written := &oadpv1alpha1.NonAdminBackup{
		Spec: oadpv1alpha1.NonAdminBackupSpec{BackupSpec: &velerov1.BackupSpec{StorageLocation: "store"}, ForceDeleteBackup: true},
		Status: oadpv1alpha1.NonAdminBackupStatus{
			Phase:        oadpv1alpha1.NonAdminPhaseCreated,
			QueueInfo:    &oadpv1alpha1.QueueInfo{EstimatedQueuePosition: 0},
			VeleroBackup: &oadpv1alpha1.VeleroBackup{Status: &velerov1.BackupStatus{Phase: "FromTheFuture"}},
		},
	}
	content, err := json.Marshal(written)
	require.NoError(t, err)

	t.Run("as JSON", func(t *testing.T) {
		var read oadpv1alpha1.NonAdminBackup
		require.NoError(t, json.Unmarshal(content, &read))
		require.Equal(t, *written, read)
	})
	t.Run("as an unstructured object", func(t *testing.T) {
		var object unstructured.Unstructured
		require.NoError(t, json.Unmarshal([]byte(`{"apiVersion":"v1","kind":"k",`+string(content[1:])), &object))
		var read oadpv1alpha1.NonAdminBackup
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read))
		require.Equal(t, written.Spec, read.Spec)
		require.Equal(t, written.Status, read.Status)
	})
	t.Run("into an object that held another", func(t *testing.T) {
		read := oadpv1alpha1.NonAdminBackup{Spec: oadpv1alpha1.NonAdminBackupSpec{DeleteBackup: true, Unreadable: "x"}}
		require.NoError(t, json.Unmarshal(content, &read))
		require.Equal(t, written.Spec, read.Spec)
	})
}

func TestAllKindsAreInTheScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, oadpv1alpha1.AddToScheme(scheme))
	for _, kind := range []string{
		oadpv1alpha1.KindNonAdminBackup, oadpv1alpha1.KindNonAdminRestore, oadpv1alpha1.KindNonAdminBackupStorageLocation,
		oadpv1alpha1.KindApprovalRequest, oadpv1alpha1.KindNonAdminDownloadRequest,
	} {
		object, err := scheme.New(oadpv1alpha1.GroupVersion.WithKind(kind))
		require.NoError(t, err)
		require.Equal(t, kind, reflect.TypeOf(object).Elem().Name())
		_, err = scheme.New(oadpv1alpha1.GroupVersion.WithKind(kind + "List"))
		require.NoError(t, err)
	}
}
