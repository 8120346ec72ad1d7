package house

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The markers of rights stand beside the code that needs them: those of a package that `make generate` does not read grant nothing.
func TestEveryRightIsInARole(t *testing.T) {
	command := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-n", "generate")
	command.Dir = root
	recipe, err := command.CombinedOutput()
	require.NoError(t, err, "%s", recipe)
	inRole := map[string]bool{}
	for line := range strings.Lines(string(recipe)) {
		if strings.Contains(line, " rbac:roleName=") {
			for _, read := range regexp.MustCompile(` paths=(\S+)`).FindAllStringSubmatch(line, -1) {
				assert.False(t, inRole[path.Clean(read[1])], "%s is in two roles", read[1])
				inRole[path.Clean(read[1])] = true
			}
		}
	}
	with := 0
	for folder, files := range packages(t) {
		for _, file := range files {
			content, err := os.ReadFile(filepath.Join(root, folder, file))
			require.NoError(t, err)
			if strings.Contains(string(content), "\n// +kubebuilder:rbac:") {
				with++
				assert.True(t, inRole[folder], "%s/%s has rights that no role has: see `role` in the Makefile", folder, file)
			}
		}
	}
	assert.Greater(t, with, 20)
}
