package gate_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/gate"
)

// hash is that of a stack's package in a checkout with these files, and one more.
func hash(t *testing.T, folder, name, content string) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"go.mod": "", "k8s/patch.go": "", "k8s/patch_test.go": "", "docs/install.md": "", "deploy/rbac.yaml": "", "workflows/README.md": "",
		"test/go.mod": "", "test/env/env.go": "", "test/env/env_test.go": "", "test/e2e/a_test.go": "", "test/fdb/a_test.go": "",
		"test/fdbsim/main.go": "", "test/flakes.txt": "", ".ci/run": "", "test/gate/gate.go": "", "starter/report/page.md": "",
		"test/tools/versitygw/go.mod": "",
	}
	files[name] = content
	for name, content := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	output, err := exec.CommandContext(t.Context(), "git", "init", "-q", root).CombinedOutput()
	require.NoError(t, err, "%s", output)
	inputs, err := gate.NewInputs(t.Context(), root, []string{"go1.26.8"})
	require.NoError(t, err)
	sum, err := inputs.Hash(folder, []string{"test/env", "k8s", folder})
	require.NoError(t, err)
	return sum
}

func TestAProofHoldsUntilSomethingChangesThatAStackDependsOn(t *testing.T) {
	for name, depend := range map[string]map[string]bool{
		"k8s/patch.go":                {"test/e2e": true, "test/deploy": true, "test/fdbsim": true},
		"starter/report/page.md":      {"test/e2e": true, "test/deploy": true, "test/fdbsim": false},
		"test/tools/versitygw/go.mod": {"test/e2e": true, "test/deploy": true, "test/fdbsim": true},
		"deploy/rbac.yaml":            {"test/e2e": true, "test/deploy": true, "test/fdbsim": false},
		"go.mod":                      {"test/e2e": true, "test/deploy": true, "test/fdbsim": true},
		"test/env/env.go":             {"test/e2e": true, "test/deploy": true, "test/fdbsim": true},
		"test/e2e/a_test.go":          {"test/e2e": true, "test/deploy": false, "test/fdbsim": false},
		"test/fdbsim/main.go":         {"test/e2e": true, "test/deploy": true, "test/fdbsim": true},
		"test/fdb/a_test.go":          {"test/e2e": false, "test/deploy": false, "test/docs": true, "test/fdbsim": false},
		"k8s/patch_test.go":           {"test/e2e": false, "test/deploy": false, "test/fdbsim": false},
		"docs/install.md":             {"test/e2e": false, "test/deploy": true, "test/docs": true, "test/fdbsim": false},
		"workflows/README.md":         {"test/e2e": false, "test/deploy": true, "test/fdbsim": false},
		"test/gate/gate.go":           {"test/e2e": false, "test/deploy": false, "test/fdbsim": false},
		"test/flakes.txt":             {"test/e2e": false, "test/deploy": false, "test/fdbsim": false},
		".ci/run":                     {"test/e2e": false, "test/deploy": false, "test/fdbsim": false},
	} {
		for folder, want := range depend {
			changed := hash(t, folder, name, "") != hash(t, folder, name, "changed")
			assert.Equal(t, want, changed, "%s depends on %s", folder, name)
		}
	}
	t.Setenv("HOLDFAST_TEST_LONG", "")
	before := hash(t, "test/e2e", "go.mod", "")
	t.Setenv("HOLDFAST_TEST_LONG", "1")
	assert.NotEqual(t, before, hash(t, "test/e2e", "go.mod", ""), "the long run is another")
}

func TestACommentChangesNoProof(t *testing.T) {
	of := func(content string) string { return hash(t, "test/e2e", "k8s/patch.go", content) }
	const source = "package k8s\n\nfunc Patch() {}\n"
	assert.Equal(t, of(source), of("// Package k8s patches.\npackage k8s\n\n// Patch patches.\nfunc Patch() {} // all\n"))
	assert.NotEqual(t, of(source), of("//go:build fdb\n\n"+source), "it says what is compiled")
	assert.NotEqual(t, of(source), of(source+"func Put() {}\n"))
	assert.NotEqual(t, of("package k8s\n\nvar a = `// a`\n"), of("package k8s\n\nvar a = `// b`\n"), "it is no comment")
	const withC = "package k8s\n\n// #include <%s>\nimport \"C\"\n"
	assert.NotEqual(t, of(fmt.Sprintf(withC, "a.h")), of(fmt.Sprintf(withC, "b.h")), "it is C")
	assert.NotEqual(t, of("package k8s // a\n}{'"), of("package k8s // b\n}{'"), "nobody can read it")
}

func TestAProofHoldsForADay(t *testing.T) {
	proofs, now := gate.Proofs{Folder: filepath.Join(t.TempDir(), "proofs")}, time.Now()
	_, found := proofs.Find("abc", nil, now)
	assert.False(t, found)
	require.NoError(t, proofs.Add("abc", gate.Proof{Package: e2e, Commit: "c0ffee", Time: now, Tests: 3}))
	proof, found := proofs.Find("abc", nil, now.Add(23*time.Hour))
	assert.True(t, found)
	assert.Equal(t, 3, proof.Tests)
	_, found = proofs.Find("abc", nil, now.Add(25*time.Hour))
	assert.False(t, found)
	_, found = proofs.Find("abc", []string{"TestBackups"}, now)
	assert.False(t, found, "a changed test that passed once is not proved")
	require.NoError(t, proofs.Add("def", gate.Proof{Package: e2e, Time: now, Thrice: []string{"TestBackups", "TestRestores"}}))
	_, found = proofs.Find("def", []string{"TestBackups"}, now)
	assert.True(t, found)
	require.NoError(t, os.WriteFile(filepath.Join(proofs.Folder, "abc"), []byte("{"), 0o600))
	_, found = proofs.Find("abc", nil, now)
	assert.False(t, found, "a record that cannot be read proves nothing")
}
