package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const glossary = "docs/glossary.md"

// banned matches the words in the first table of the glossary's last section.
func banned(t *testing.T) *regexp.Regexp {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, glossary))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## Words not used here\n")
	require.True(t, found, "%s has its last section", glossary)
	var words []string
	for line := range strings.Lines(section) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
			if strings.HasPrefix(line, "| `") {
				words = append(words, regexp.QuoteMeta(quoted[1]))
			}
		}
	}
	require.Greater(t, len(words), 10)
	return regexp.MustCompile(`(?i)\b(` + strings.Join(words, "|") + `)\b`)
}

// camel separates the words of an identifier.
var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// Code, comments and docs use the words of the glossary.
func TestNobodyUsesBannedWords(t *testing.T) {
	words := banned(t)
	var checked int
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || (entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), ".")) {
			if entry.IsDir() && err == nil {
				return fs.SkipDir
			}
			return err
		}
		if entry.IsDir() || name == glossary || !slices.Contains([]string{".go", ".md", ".yaml"}, filepath.Ext(name)) {
			return nil
		}
		checked++
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		number := 0
		for line := range strings.Lines(string(content)) {
			number++
			plain := camel.ReplaceAllString(line, "$1 $2")
			if word := words.FindString(plain); word != "" {
				assert.Fail(t, "a banned word", "%s:%d: %q, see the end of %s: %s", name, number, word, glossary, line)
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, checked, 300)
}
