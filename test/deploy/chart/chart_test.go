package chart

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// copyOfDeploy lays deploy/ where a test may change it.
func copyOfDeploy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "..", "deploy"))))
	return dir
}

func replaceIn(t *testing.T, file, old, text string) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(content), old)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(content), old, text, 1)), 0o600))
}

// filesOf are the contents of the chart's files by their paths.
func filesOf(t *testing.T, deploy string) map[string]string {
	t.Helper()
	files := map[string]string{}
	chart := os.DirFS(filepath.Join(deploy, "chart"))
	require.NoError(t, fs.WalkDir(chart, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(chart, path)
		files[path] = string(content)
		return err
	}))
	return files
}

func TestWhatIsWrittenIsWhatIsThere(t *testing.T) {
	deploy := copyOfDeploy(t)
	before := filesOf(t, deploy)
	stale := filepath.Join(deploy, "chart", filepath.FromSlash(Generated), "rbac", "stale.yaml")
	require.NoError(t, os.WriteFile(stale, []byte("kind: Role\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(deploy, "chart", copies, "stale.json"), []byte("{}"), 0o600))
	require.NoError(t, Write(deploy))
	after := filesOf(t, deploy)
	assert.Len(t, after, len(before))
	for name, content := range after {
		assert.Equal(t, before[name], content, "%s: run `make generate`", name)
	}
}

// A manifest that changes beneath a value is refused in words that name both, and the chart stays as it was.
func TestAValueThatHasNoPlaceIsAnError(t *testing.T) {
	for title, test := range map[string]struct{ file, old, text, want string }{
		"none":             {"base/worker.yaml", "  replicas: 2\n", "  replicas: 3\n", "worker.yaml: Deployment holdfast-worker: (?m)^  replicas: 2"},
		"two":              {"base/watcher.yaml", "          ports:\n", "          ports:\n          ports:\n", `watcher.yaml: Deployment holdfast-watcher: (?m)^          ports:\n must match once, and matches 2 times`},
		"a switch":         {"rbac/restores.yaml", "- name: allowSnapshotSecrets\n", "- name: allowSecrets\n", "must match once, and matches 0 times"},
		"Helm's delimiter": {"rbac/tenants.yaml", "# What tenants", "# {{ What tenants", "tenants.yaml: it has {{, which is Helm's own"},
		"no metadata":      {"rbac/approver_role.yaml", "metadata:\n", "meta:\n", "approver_role.yaml: a document without metadata"},
	} {
		t.Run(title, func(t *testing.T) {
			deploy := copyOfDeploy(t)
			before := filesOf(t, deploy)
			replaceIn(t, filepath.Join(deploy, test.file), test.old, test.text)
			require.ErrorContains(t, Write(deploy), test.want)
			assert.Equal(t, before, filesOf(t, deploy))
		})
	}
}
