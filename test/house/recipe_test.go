package house

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// What CONTRIBUTING.md promises of a kind, imports, the rights of tenants and generated files aside.
const (
	mostPlaces = 6
	mostLines  = 4
)

// A throw-away kind of objects that is added to a copy of the product: its own files, and the lines that existing files get.
var (
	kindFiles = filepath.Join("testdata", "kind")
	kindLines = []edit{
		{"workflows/register.go", "queue.Kind,\n", "queue.Kind, puppet.Kind,\n"},
		{"worker/velero.go", "	downloads.Register(runner)\n", "	downloads.Register(runner)\n	(&puppet.Activities{Cluster: served}).Register(runner)\n"},
		{"starter/watch/velero/kinds.go", "newPlans(env).Kind,", "newPlans(env).Kind, newPuppets(env),"},
		{"starter/show.go", "velero.Plans,", "velero.Plans, velero.Puppets,"},
	}
	kindImports = []edit{
		{"workflows/register.go", "import (\n", "import (\n\t\"holdfast.dev/holdfast/workflows/puppet\"\n"},
		{"worker/velero.go", "import (\n", "import (\n\t\"holdfast.dev/holdfast/activities/puppet\"\n"},
	}
	// kindRights are in two roles, to edit and to view, and not derived: what tenants may do is for a person to say.
	kindRights = []edit{
		{"deploy/rbac/tenants.yaml", "resources: [backupplans, restoredrills]", "resources: [backupplans, restoredrills, puppets]"},
	}
)

type edit struct{ file, old, new string }

// A kind is added by the recipe in CONTRIBUTING.md: then the tests of all kinds pass, which ask each kind's value.
func TestAKindIsAddedByTheRecipe(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles a copy of the product")
	}
	product := copyOfProduct(t)
	places := map[string]bool{}
	require.NoError(t, filepath.WalkDir(kindFiles, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(kindFiles, strings.TrimSuffix(path, ".txt"))
		if err == nil {
			places[filepath.Dir(name)] = true
			err = copyFile(path, filepath.Join(product, name))
		}
		return err
	}))
	assert.LessOrEqual(t, len(places), mostPlaces, "places: %v", places)
	assert.LessOrEqual(t, len(kindLines), mostLines, "edited lines")
	for _, edits := range [][]edit{kindLines, kindImports, kindRights} {
		for _, e := range edits {
			path := filepath.Join(product, e.file)
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Contains(t, string(content), e.old, e.file)
			require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(content), e.old, e.new)), 0o600))
		}
	}
	run(t, product, "make", "generate")
	tested := []string{"./workflows", "./workflows/puppet", "./worker/...", "./starter", "./starter/watch", "./k8s/policy/check"}
	if sample.Whole() {
		tested = []string{"./..."}
	}
	run(t, product, "go", append([]string{"test", "-trimpath", "-vet=off", "-tags=disable_grpc_modules"}, tested...)...)
}

// generating is what `make generate` uses of the tests' module.
var generating = regexp.MustCompile(`^test/(go\.|tools/|deploy/(bundle|chart|cmd)/)`)

// copyOfProduct copies what git knows, or would add, but for tests on real components.
func copyOfProduct(t *testing.T) string {
	t.Helper()
	listed, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-co", "--exclude-standard").Output()
	require.NoError(t, err)
	product := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimSpace(string(listed)), "\n") {
		if strings.HasPrefix(name, "test/") && !generating.MatchString(name) {
			continue
		}
		err := copyFile(filepath.Join(root, name), filepath.Join(product, name))
		require.True(t, err == nil || os.IsNotExist(err), "%v", err) // deleted, and not committed yet
	}
	return product
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o700) // scripts, too
}

func run(t *testing.T, in, program string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir = in
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s %v:\n%s", program, arguments, output)
}
