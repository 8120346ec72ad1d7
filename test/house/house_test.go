// Package house checks the layout of the product: sizes, package comments, imports, and the maps in README.md and CONTRIBUTING.md.
package house

import (
	"bufio"
	"go/parser"
	"go/token"
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

const (
	root = "../.."
	// maxFiles is how many files of code a package has at most; more want to be two.
	maxFiles = 20
	// maxPrefixed is how many of them may begin with the same word and an underscore; more want a folder.
	maxPrefixed = 3
	// maxLines is how long a file is at most. Generated ones are exempt.
	maxLines = 400
	// maxDocLines is how long the comment in a doc.go is at most.
	maxDocLines = 12
)

// tops are the folders that hold the product.
var tops = []string{"workflows", "activities", "k8s", "worker", "starter"}

// packages returns the files of code, without tests, of every package of the product by its folder.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, top := range tops {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(path))
			found[folder] = append(found[folder], filepath.Base(path))
			return err
		})
		require.NoError(t, err)
	}
	require.NotEmpty(t, found)
	return found
}

func generated(file string) bool { return strings.HasPrefix(file, "zz_generated.") }

func TestNoPackageIsTooFull(t *testing.T) {
	for folder, files := range packages(t) {
		files = slices.DeleteFunc(files, generated)
		assert.LessOrEqual(t, len(files), maxFiles, "%s has %d files of code: split it", folder, len(files))
		prefixed := map[string]int{}
		for _, file := range files {
			if word, _, found := strings.Cut(file, "_"); found {
				prefixed[word]++
			}
		}
		for word, count := range prefixed {
			assert.LessOrEqual(t, count, maxPrefixed, "%s has %d files that begin with %s_: make it a folder", folder, count, word)
		}
	}
}

func TestNoFileIsTooLong(t *testing.T) {
	for _, top := range append(tops, "test") {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || generated(entry.Name()) {
				return err
			}
			content, err := os.ReadFile(path)
			lines := strings.Count(string(content), "\n")
			assert.LessOrEqual(t, lines, maxLines, "%s has %d lines: split it", path, lines)
			return err
		})
		require.NoError(t, err)
	}
}

// Every package says in a few lines what it knows, who calls it and what it may import.
func TestEveryPackageHasItsComment(t *testing.T) {
	for folder, files := range packages(t) {
		file := "doc.go"
		if !slices.Contains(files, file) {
			file = "main.go"
		}
		path := filepath.Join(root, folder, file)
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			assert.Fail(t, "a package without its comment", "%s has no doc.go: %v", folder, err)
			continue
		}
		if parsed.Name.Name == "main" {
			continue
		}
		name := filepath.Base(folder)
		assert.Equal(t, name, parsed.Name.Name, "a package has the name of its folder")
		if assert.NotNil(t, parsed.Doc, "%s has no comment", path) {
			lines := strings.Count(parsed.Doc.Text(), "\n")
			assert.LessOrEqual(t, lines, maxDocLines, "%s: %d lines", path, lines)
			assert.True(t, strings.HasPrefix(parsed.Doc.Text(), "Package "+name+" "), "%s begins with the package's name", path)
		}
	}
}

// folder is how the maps name one.
var folder = regexp.MustCompile("`((?:" + strings.Join(tops, "|") + ")(?:/[a-z0-9.]+)*)/?`")

// named returns the folders of the product that a page names.
func named(t *testing.T, page string) []string {
	t.Helper()
	file, err := os.Open(filepath.Join(root, page))
	require.NoError(t, err)
	defer file.Close()
	var folders []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		for _, match := range folder.FindAllStringSubmatch(lines.Text(), -1) {
			folders = append(folders, match[1])
		}
	}
	require.NotEmpty(t, folders)
	return folders
}

func TestTheMapsNameWhatThereIs(t *testing.T) {
	for _, page := range []string{"README.md", "CONTRIBUTING.md", "test/README.md"} {
		for _, name := range named(t, page) {
			_, err := os.Stat(filepath.Join(root, name))
			assert.NoError(t, err, "%s names %s", page, name)
		}
	}
}

// A newcomer finds every package in CONTRIBUTING's map: itself, or what holds it.
func TestTheMapNamesEveryPackage(t *testing.T) {
	names := named(t, "CONTRIBUTING.md")
	for path := range packages(t) {
		words := strings.Split(path, "/")
		want := strings.Join(words[:min(2, len(words))], "/")
		assert.Contains(t, names, want, "CONTRIBUTING.md does not name %s", path)
	}
}
