package e2e_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/workflows/contract"
)

type restoring = oadpv1alpha1.NonAdminRestore

// restore creates a NonAdminRestore as the tenant.
func (x *tenant) restore(name, backup string, changes ...func(*velerov1.RestoreSpec)) *restoring {
	x.t.Helper()
	nar := &restoring{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name},
		Spec:       oadpv1alpha1.NonAdminRestoreSpec{RestoreSpec: &velerov1.RestoreSpec{BackupName: backup}},
	}
	for _, alter := range changes {
		alter(nar.Spec.RestoreSpec)
	}
	require.NoError(x.t, x.client.Create(x.t.Context(), nar))
	return nar
}

// awaitRestore waits until the restore is as wished and returns it. It looks as the tenant: what it finds, the tenant can read.
func (x *tenant) awaitRestore(nar *restoring, want string, ok func(*restoring) bool) *restoring {
	x.t.Helper()
	return x.awaitRestoreFor(patience, nar, want, ok)
}

func (x *tenant) awaitRestoreFor(limit time.Duration, nar *restoring, want string, ok func(*restoring) bool) *restoring {
	x.t.Helper()
	return awaitObject(x.t, x.client, nar, limit, want, func(now *restoring, there bool) bool { return there && ok(now) })
}

// awaitFinalized waits for the end of the finalization.
func (x *tenant) awaitFinalized(nar *restoring) *restoring {
	x.t.Helper()
	return x.awaitRestore(nar, "finalized", func(now *restoring) bool {
		return now.Status.Finalization != nil && now.Status.Finalization.Phase.Final()
	})
}

// awaitFinalizedAs waits for the end of the finalization, which must be the given one.
func (x *tenant) awaitFinalizedAs(nar *restoring, phase oadpv1alpha1.FinalizationPhase) *restoring {
	x.t.Helper()
	seen := x.awaitFinalized(nar)
	status, _ := json.Marshal(seen.Status)
	require.Equal(x.t, phase, seen.Status.Finalization.Phase, "status %s", status)
	return seen
}

func (x *tenant) awaitRestorePhase(nar *restoring, phase velerov1.RestorePhase) *restoring {
	x.t.Helper()
	return x.awaitRestore(nar, "Velero phase "+string(phase), func(now *restoring) bool { return restorePhase(now) == phase })
}

func (x *tenant) awaitRestoreCreated(nar *restoring) *restoring {
	x.t.Helper()
	return x.awaitRestore(nar, "Created", func(now *restoring) bool {
		return now.Status.Phase == oadpv1alpha1.NonAdminPhaseCreated
	})
}

// awaitRestoreRefused waits until the restore's spec is refused, and returns what is said about it.
func (x *tenant) awaitRestoreRefused(nar *restoring, reason string, saying ...string) string {
	x.t.Helper()
	want := "refused: " + strings.Join(append([]string{reason}, saying...), ", ")
	seen := x.awaitRestore(nar, want, func(now *restoring) bool {
		accepted := restoreCondition(now, oadpv1alpha1.NonAdminConditionAccepted)
		return now.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff && accepted != nil &&
			accepted.Status == metav1.ConditionFalse && accepted.Reason == reason &&
			!slices.ContainsFunc(saying, func(text string) bool { return !strings.Contains(accepted.Message, text) })
	})
	return restoreCondition(seen, oadpv1alpha1.NonAdminConditionAccepted).Message
}

func (x *tenant) awaitRestoreGone(nar *restoring) {
	x.t.Helper()
	awaitObject(x.t, admin, nar, patience, "gone", func(_ *restoring, there bool) bool { return !there })
}

// removeRestore deletes a restore and waits until nothing of it is left but what it restored.
func (x *tenant) removeRestore(nar *restoring) {
	x.t.Helper()
	require.NoError(x.t, x.client.Delete(x.t.Context(), nar.DeepCopy()))
	x.awaitRestoreGone(nar)
	assert.Nil(x.t, veleroRestore(x.t, restoreID(nar)), "the Velero Restore goes with it")
	left, err := stack.Objects("velero/restores/" + restoreID(nar) + "/")
	require.NoError(x.t, err)
	assert.Empty(x.t, left, "its files go with it")
}

func restorePhase(nar *restoring) velerov1.RestorePhase {
	if nar.Status.VeleroRestore == nil || nar.Status.VeleroRestore.Status == nil {
		return ""
	}
	return nar.Status.VeleroRestore.Status.Phase
}

func restoreCondition(nar *restoring, kind oadpv1alpha1.NonAdminCondition) *metav1.Condition {
	return meta.FindStatusCondition(nar.Status.Conditions, string(kind))
}

// restoreID is the name of all that is made for a restore.
func restoreID(nar *restoring) string {
	return owner.NACUUID(stack.ClusterID(), nar.Namespace, nar.Name, string(nar.UID))
}

// veleroRestore reads a Velero Restore as the administrator; nil if there is none.
func veleroRestore(t *testing.T, name string) *velerov1.Restore {
	t.Helper()
	if found := (&velerov1.Restore{}); made(t, name, found) {
		return found
	}
	return nil
}

func restoreRef(nar *restoring) contract.ObjectRef {
	return contract.ObjectRef{Namespace: nar.Namespace, Name: nar.Name, UID: string(nar.UID)}
}

// linesOf is what a task of the finalization says.
func linesOf(nar *restoring, task string) (warnings, errors []string) {
	for _, each := range nar.Status.Finalization.Tasks {
		if each.Name == task {
			return each.Warnings, each.Errors
		}
	}
	return nil, nil
}

// results are a restore's messages as they lie in the bucket.
type results map[string]struct {
	Velero, Cluster []string
	Namespaces      map[string][]string
}

// resultsOf reads a restore's results from the folder of a bucket that a location has.
func resultsOf(t *testing.T, dir, prefix string, nar *restoring) results {
	t.Helper()
	name := restoreID(nar)
	packed, err := os.ReadFile(filepath.Join(dir, prefix, "restores", name, "restore-"+name+"-results.gz"))
	require.NoError(t, err)
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	found := results{}
	require.NoError(t, json.NewDecoder(reader).Decode(&found))
	return found
}

// putObject writes a file into a bucket, as somebody who has its keys.
func putObject(t *testing.T, bucket, key string, content []byte) {
	t.Helper()
	storage := stack.Storage()
	to := s3.New(s3.Options{
		BaseEndpoint: aws.String(storage.Endpoint), Region: storage.Region, UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: storage.AccessKey, SecretAccessKey: storage.SecretKey}, nil
		}),
	})
	_, err := to.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(content)})
	require.NoError(t, err)
}

func gzipped(t *testing.T, value any) []byte {
	t.Helper()
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	require.NoError(t, json.NewEncoder(writer).Encode(value))
	require.NoError(t, writer.Close())
	return packed.Bytes()
}

// recordRestore is record for a restore and, if there was one, its finalization.
func recordRestore(t *testing.T, nar *restoring) {
	t.Helper()
	for _, kind := range []contract.Kind{contract.KindRestore, contract.KindFinalization} {
		id := contract.WorkflowID(stack.ClusterID(), kind, restoreRef(nar))
		if kind == contract.KindFinalization && !workflowKnown(t, id) {
			continue
		}
		awaitCompleted(t, id)
	}
}

// exists reports whether an object is there, as the administrator sees it.
func exists(t require.TestingT, object client.Object) bool {
	err := admin.Get(context.Background(), client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
	if apierrors.IsNotFound(err) {
		return false
	}
	require.NoError(t, err)
	return true
}

// deleteAtEnd removes an object of the cluster that a test has made.
func deleteAtEnd(t *testing.T, object client.Object) {
	t.Helper()
	assert.NoError(t, client.IgnoreNotFound(admin.Delete(context.Background(), object.DeepCopyObject().(client.Object))))
}

// awaitBound waits until a volume is bound to its claim.
func awaitBound(t *testing.T, volume *corev1.PersistentVolume) {
	t.Helper()
	awaitObject(t, admin, volume, patience, "bound", func(now *corev1.PersistentVolume, there bool) bool {
		return there && now.Status.Phase == corev1.VolumeBound
	})
}

// seeded selects what Seed has made.
var seeded = client.MatchingLabels{"app": "seed"}

func inNamespace(namespace string) client.InNamespace { return client.InNamespace(namespace) }

func keyOf(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }
