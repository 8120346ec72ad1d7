package env_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
)

// usesAccounts has Velero use an account's bucket with the account's keys, and then another's bucket with the same keys.
func usesAccounts(ctx context.Context, t *testing.T, stack *env.Env) {
	red, err := stack.CreateAccount(ctx, "team-red")
	require.NoError(t, err)
	blue, err := stack.CreateAccount(ctx, "team-blue")
	require.NoError(t, err)
	require.NoError(t, stack.Client().Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: "keys-of-red"},
		Data:       map[string][]byte{"cloud": red.CredentialsFile()},
	}))

	createLocation(ctx, t, stack, "own", red.Bucket)
	awaitPhase(ctx, t, stack, "BackupStorageLocation", "own", "Available")
	create(ctx, t, stack, "Backup", "into-own", map[string]any{
		"includedNamespaces": []any{"team-a"}, "snapshotVolumes": false, "storageLocation": "own",
	})
	awaitPhase(ctx, t, stack, "Backup", "into-own", "Completed")
	objects, err := stack.BucketObjects(red, "backups/into-own")
	require.NoError(t, err)
	require.NotEmpty(t, objects)

	createLocation(ctx, t, stack, "foreign", blue.Bucket)
	refused := awaitPhase(ctx, t, stack, "BackupStorageLocation", "foreign", "Unavailable")
	message, _, _ := unstructured.NestedString(refused.Object, "status", "message")
	require.Contains(t, message, "403")
	objects, err = stack.BucketObjects(blue, "")
	require.NoError(t, err)
	require.Empty(t, objects)
}

func createLocation(ctx context.Context, t *testing.T, stack *env.Env, name, bucket string) {
	t.Helper()
	create(ctx, t, stack, "BackupStorageLocation", name, map[string]any{
		"provider":      "aws",
		"objectStorage": map[string]any{"bucket": bucket},
		"credential":    map[string]any{"name": "keys-of-red", "key": "cloud"},
		"config": map[string]any{
			"region": stack.Storage().Region, "s3ForcePathStyle": "true", "s3Url": stack.Storage().Endpoint, "checksumAlgorithm": "",
		},
	})
}

func create(ctx context.Context, t *testing.T, stack *env.Env, kind, name string, spec map[string]any) {
	t.Helper()
	require.NoError(t, stack.Client().Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "velero.io/v1", "kind": kind,
		"metadata": map[string]any{"namespace": env.OADPNamespace, "name": name},
		"spec":     spec,
	}}))
}

func awaitPhase(ctx context.Context, t *testing.T, stack *env.Env, kind, name, want string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("velero.io/v1")
	object.SetKind(kind)
	eventually.Succeeds(t, 3*time.Minute, func() error {
		err := stack.Client().Get(ctx, client.ObjectKey{Namespace: env.OADPNamespace, Name: name}, object)
		if phase, _, _ := unstructured.NestedString(object.Object, "status", "phase"); err == nil && phase != want {
			err = fmt.Errorf("%s %s is not %s: status %v", kind, name, want, object.Object["status"])
		}
		return err
	})
	return object
}
