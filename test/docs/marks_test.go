package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// itself is how marks name this package, and ours the test of it that runs blocks.
const (
	itself = "test/docs"
	ours   = itself + " TestTheCommandsOfThePages"
)

// languages are those of blocks. Output alone has none, or is text.
var languages = []string{"sh", "bash", "console", "yaml", "json", "toml", "ini", "mermaid", "text", ""}

// elsewhere are programs that blocks of ours do not have, so that a new block does not get the page's mark unseen.
var elsewhere = regexp.MustCompile(`(?m)^\s*(helm|docker|operator-sdk|tcld|make|prometheus|promtool|fdbbackup|fdbcli)\b`)

// pages are README.md and all below docs but the records of decisions.
func pages(t *testing.T) []page {
	t.Helper()
	var found []page
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/runbooks/*.md"} {
		paths, err := filepath.Glob(filepath.Join(checkout(t), pattern))
		require.NoError(t, err)
		for _, each := range paths {
			path, err := filepath.Rel(checkout(t), each)
			require.NoError(t, err)
			found = append(found, readPage(t, filepath.ToSlash(path)))
		}
	}
	require.Greater(t, len(found), 20)
	return found
}

// Every block of commands is run by a test that exists, or its page says why not.
func TestEveryBlockOfCommandsIsRunOrSaysWhyNot(t *testing.T) {
	run, notRun := 0, 0
	for _, page := range pages(t) {
		for _, block := range page.blocks {
			assert.Contains(t, languages, block.language, "%s: commands are in blocks of language sh or console", block.where)
			if block.commands() == "" {
				continue
			}
			requireShell(t, block)
			switch by := block.mark.runBy; {
			case block.mark.notRun != "":
				notRun++
				requireNamed(t, block, block.mark.notRun)
			case by == "":
				assert.Fail(t, "no mark", "%s: no mark says which test runs it, or why none does:\n%s", block.where, block.text)
			default:
				run++
				requireNamed(t, block, by)
				assert.True(t, by != ours || !elsewhere.MatchString(block.commands()), "%s needs more than the test has", block.where)
				read := slices.ContainsFunc(visits, func(each visit) bool { return each.path == page.path })
				assert.True(t, read || by != ours, "%s: the test does not read this page", block.where)
			}
		}
	}
	t.Logf("%d blocks of commands are run, %d are not", run, notRun)
	require.Greater(t, run, notRun, "most are run")
}

// requireShell requires that a shell can read the commands, also those that are not run.
func requireShell(t *testing.T, block block) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-n")
	command.Stdin = strings.NewReader(block.commands() + "\n")
	output, err := command.CombinedOutput()
	assert.NoError(t, err, "%s: %s", block.where, output)
}

var (
	folderNamed = regexp.MustCompile(`\btest/[a-z0-9/]*[a-z0-9]`)
	testNamed   = regexp.MustCompile(`\bTest[A-Z]\w+`)
	fileNamed   = regexp.MustCompile(`\b\w+_test\.go`)
)

// requireNamed requires that the tests that a mark names exist: each in a folder that it names, too.
func requireNamed(t *testing.T, block block, text string) {
	t.Helper()
	var files, tests []string // of the folders
	for _, folder := range folderNamed.FindAllString(text, -1) {
		paths, err := filepath.Glob(filepath.Join(checkout(t), folder, "*_test.go"))
		require.NoError(t, err)
		assert.NotEmpty(t, paths, "%s: there are no tests in %s", block.where, folder)
		for _, path := range paths {
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			files = append(files, filepath.Base(path))
			for _, declared := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(content), -1) {
				tests = append(tests, declared[1])
			}
		}
	}
	for _, name := range testNamed.FindAllString(text, -1) {
		assert.Contains(t, tests, name, "%s: there is no such test", block.where)
	}
	for _, name := range fileNamed.FindAllString(text, -1) {
		assert.Contains(t, files, name, "%s: there is no such file", block.where)
	}
}
