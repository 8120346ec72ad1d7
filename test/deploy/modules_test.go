package deploy_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const product = "holdfast.dev/holdfast/"

// programs are what is shipped.
var programs = []string{product + "worker", product + "starter"}

func TestTheProductDoesNotRequireItsTests(t *testing.T) {
	var file struct {
		Require []struct{ Path string }
		Replace []struct{ Old struct{ Path string } }
	}
	require.NoError(t, json.Unmarshal([]byte(goCommand(t, inCheckout(t), "mod", "edit", "-json")), &file))
	require.NotEmpty(t, file.Require)
	for _, required := range file.Require {
		assert.False(t, strings.HasPrefix(required.Path, product), "go.mod requires %s", required.Path)
	}
	assert.Empty(t, file.Replace, "replacements hold in this checkout alone")
}

// Test doubles that unit tests of several packages share lie in the product's module, and in neither program.
func TestTheProgramsHoldNoTestDoubles(t *testing.T) {
	const failpoint = product + "k8s/process/failpoint"
	double := func(linked string) bool {
		ours := strings.HasPrefix(linked, product)
		return linked == failpoint || linked == product+"activities/fake" || ours && strings.HasSuffix(linked, "test")
	}
	held := func(options ...string) []string {
		return slices.DeleteFunc(goList(t, inCheckout(t), "{{.ImportPath}}", append(options, programs...)...),
			func(linked string) bool { return !double(linked) })
	}
	assert.Empty(t, held())
	assert.Equal(t, []string{failpoint}, held("-tags=outage"), "what is looked for is found where it is")
}

// The product's unit tests run from the tests' module: they prove something of what is shipped only if it has the same
// versions there. If not: `go get <module>@<version>` where the version is lower, or `go -C test get ...`.
func TestTestsRunAgainstTheVersionsThatAreShipped(t *testing.T) {
	const version = "{{with .Module}}{{if not .Replace}}{{if .Version}}{{.}}{{end}}{{end}}{{end}}"
	for _, program := range programs {
		shipped := goList(t, inCheckout(t), version, program)
		tested := goList(t, inCheckout(t, "test"), version, program)
		require.Greater(t, len(shipped), 50)
		assert.Equal(t, shipped, tested, program)
	}
}

// goList returns what the format tells of the packages and all that they import, each line once.
func goList(t *testing.T, dir, format string, packages ...string) []string {
	t.Helper()
	lines := strings.Fields(strings.ReplaceAll(goCommand(t, dir, append([]string{"list", "-deps", "-f", format}, packages...)...), " ", "@"))
	slices.Sort(lines)
	return slices.Compact(lines)
}

func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = dir
	var complaint strings.Builder
	command.Stderr = &complaint
	output, err := command.Output()
	require.NoError(t, err, "%s: %s", command, &complaint)
	return string(output)
}
