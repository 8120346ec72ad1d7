package deploy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// What a reader copies from the documents, or compares with, has only fields that exist.
func TestTheTenantsObjectsInTheDocumentsAreWhatTheirKindsTake(t *testing.T) {
	paths, err := filepath.Glob(inCheckout(t, "docs", "*.md"))
	require.NoError(t, err)
	found := map[string]int{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, block := range regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```\n").FindAllSubmatch(content, -1) {
			var kind metav1.TypeMeta
			if yaml.Unmarshal(block[1], &kind) != nil { // part of a file
				continue
			}
			into := documented(kind.Kind)
			if into == nil || (kind.Kind == "" && !bytes.HasPrefix(block[1], []byte("status:\n"))) {
				continue
			}
			found[kind.Kind]++
			require.NoError(t, yaml.UnmarshalStrict(block[1], into), "%s:\n%s", filepath.Base(path), block[1])
		}
	}
	assert.Equal(t, 2, found["NonAdminBackup"])
	assert.Equal(t, 1, found["NonAdminRestore"])
	assert.Equal(t, 1, found["NonAdminBackupStorageLocation"])
	assert.Equal(t, 3, found["FoundationDBBackup"])
	assert.Equal(t, 2, found["FoundationDBRestore"])
	assert.Equal(t, 1, found[""], "the status of a restore")
}

// documented returns a type with the fields of a kind, without its own decoding, which lets a tenant write anything.
func documented(kind string) any {
	type object struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta `json:"metadata"`
	}
	switch kind {
	case "": // a status alone
		return &struct {
			Status oadpv1alpha1.NonAdminRestoreStatus `json:"status"`
		}{}
	case "NonAdminBackup":
		return &struct {
			object
			Spec struct {
				BackupSpec velerov1.BackupSpec `json:"backupSpec"`
			} `json:"spec"`
		}{}
	case "FoundationDBBackup":
		return &struct {
			object
			Spec fdbv1alpha1.FoundationDBBackupSpec `json:"spec"`
		}{}
	case "FoundationDBRestore":
		return &struct {
			object
			Spec fdbv1alpha1.FoundationDBRestoreSpec `json:"spec"`
		}{}
	case "NonAdminRestore":
		return &struct {
			object
			Spec struct {
				RestoreSpec velerov1.RestoreSpec `json:"restoreSpec"`
			} `json:"spec"`
		}{}
	case "NonAdminBackupStorageLocation":
		return &struct {
			object
			Spec struct {
				BackupStorageLocationSpec velerov1.BackupStorageLocationSpec `json:"backupStorageLocationSpec"`
			} `json:"spec"`
		}{}
	}
	return nil
}
