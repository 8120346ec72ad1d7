// Package house checks the layout of the product: sizes, package comments, imports, and the maps in README.md and CONTRIBUTING.md.
// Imports, CRDs and the samples of `make test` have a veto in every run; of the rest `make test` only warns: see strict.
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
	// minBeginning is how many letters the names of files have in common that begin alike.
	minBeginning = 3
	// maxLines is how long a file is at most. Generated ones are exempt.
	maxLines = 400
	// maxDocLines is how long the comment in a doc.go is at most.
	maxDocLines = 12
)

// tops are the folders that hold the product, and tests the one that holds the tests' module.
var tops = []string{"workflows", "activities", "k8s", "worker", "starter"}

const tests = "test"

// room is how full a package may be.
type room struct {
	// files is how many it has at most; more want to be two packages.
	files int
	// alike is how many of their names may begin alike; more want a folder.
	alike int
}

var (
	// ofCode are the files without tests of a package of the product.
	ofCode = room{files: 20, alike: 3}
	// ofTests are the files of a package below test/, with those of tests: most have nothing else.
	ofTests = room{files: 30, alike: 6}
)

// larger are packages with more room, and why.
var larger = map[string]struct {
	room
	why string
}{
	"workflows/contract":    {room{files: 22, alike: 7}, "a file for each kind, by its name: the names on the wire are in one place"},
	"k8s/api/oadp/v1alpha1": {room{files: 20, alike: 4}, "a file for each kind, by its name: a version of an API is one package"},
	"test/e2e":              {room{files: 50, alike: 13}, "its tests share one stack, which a package starts once; two packages would start two"},
	"test/deploy":           {room{files: 35, alike: 6}, "its tests share two stacks, which a package starts once; two packages would start four"},
	"test/env":              {room{files: 40, alike: 6}, "the stack is one type; beside its parts are the tests of each, and of the kubelet, on one stack"},
}

// packages returns the files of code, without tests, of every package of the product by its folder.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, top := range tops {
		addFiles(t, found, top, false)
	}
	require.NotEmpty(t, found)
	return found
}

// addFiles adds a folder's files of Go by the folders that they are in.
func addFiles(t *testing.T, found map[string][]string, top string, withTests bool) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
		isTest := strings.HasSuffix(path, "_test.go")
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || (isTest && !withTests) {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		found[folder] = append(found[folder], filepath.Base(path))
		return err
	})
	require.NoError(t, err)
}

func generated(file string) bool { return strings.HasPrefix(file, "zz_generated.") }

func TestNoPackageIsTooFull(t *testing.T) {
	ofTheTests := map[string][]string{}
	addFiles(t, ofTheTests, tests, true)
	require.NotEmpty(t, ofTheTests)
	for folder, files := range packages(t) {
		checkRoom(t, folder, files, ofCode)
	}
	for folder, files := range ofTheTests {
		checkRoom(t, folder, files, ofTests)
	}
	for folder := range larger {
		_, err := os.Stat(filepath.Join(root, folder))
		expect(t, err == nil, "larger names %s: %v", folder, err)
	}
}

func checkRoom(t *testing.T, folder string, files []string, most room) {
	t.Helper()
	files = slices.DeleteFunc(files, generated)
	count, beginning := alike(files)
	more, is := larger[folder]
	if is {
		expect(t, len(files) > most.files || count > most.alike, "%s needs no more room than others", folder)
		most = more.room
	}
	expect(t, len(files) <= most.files, "%s has %d files: split it", folder, len(files))
	expect(t, count <= most.alike, "%s has %d files that begin with %q: make them a folder", folder, count, beginning)
}

// alike returns how many of the files' names begin alike, at most, and how.
func alike(files []string) (most int, beginning string) {
	counts := map[string]int{}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimSuffix(file, ".go"), "_test")
		for end := minBeginning; end <= len(name); end++ {
			counts[name[:end]]++
		}
	}
	for name, count := range counts {
		if count > most || (count == most && len(name) > len(beginning)) {
			most, beginning = count, name
		}
	}
	return most, beginning
}

func TestNamesThatBeginAlikeAreCounted(t *testing.T) {
	for title, test := range map[string]struct {
		files     []string
		most      int
		beginning string
	}{
		"words with underscores":     {[]string{"fdb_a.go", "fdb_b.go", "other.go"}, 2, "fdb_"},
		"words without":              {[]string{"fdbexpiry.go", "fdbrestore.go", "fdb.go", "other.go"}, 3, "fdb"},
		"a test counts as its file":  {[]string{"queue.go", "queue_test.go"}, 2, "queue"},
		"two letters are no word":    {[]string{"decide.go", "deletes.go"}, 1, "deletes"},
		"the longest that they have": {[]string{"restores.go", "restored.go"}, 2, "restore"},
	} {
		t.Run(title, func(t *testing.T) {
			most, beginning := alike(test.files)
			assert.Equal(t, test.most, most)
			assert.Equal(t, test.beginning, beginning)
		})
	}
}

func TestNoFileIsTooLong(t *testing.T) {
	for _, top := range append(slices.Clone(tops), tests) {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || generated(entry.Name()) {
				return err
			}
			content, err := os.ReadFile(path)
			lines := strings.Count(string(content), "\n")
			expect(t, lines <= maxLines, "%s has %d lines: split it", path, lines)
			return err
		})
		require.NoError(t, err)
	}
}

// Every package says in a few lines what it knows and who calls it.
func TestEveryPackageHasItsComment(t *testing.T) {
	for folder, files := range packages(t) {
		file := "doc.go"
		if !slices.Contains(files, file) {
			file = "main.go"
		}
		path := filepath.Join(root, folder, file)
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			expect(t, false, "%s has no doc.go with its comment: %v", folder, err)
			continue
		}
		if parsed.Name.Name == "main" {
			continue
		}
		name := filepath.Base(folder)
		expect(t, name == parsed.Name.Name, "%s: a package has the name of its folder, not %s", path, parsed.Name.Name)
		if expect(t, parsed.Doc != nil, "%s has no comment", path) {
			lines := strings.Count(parsed.Doc.Text(), "\n")
			expect(t, lines <= maxDocLines, "%s: %d lines, not %d", path, lines, maxDocLines)
			expect(t, strings.HasPrefix(parsed.Doc.Text(), "Package "+name+" "), "%s does not begin with the package's name", path)
		}
	}
}

// folder is how the maps name one.
var folder = regexp.MustCompile("`((?:" + strings.Join(tops, "|") + ")(?:/[a-z0-9.-]+)*)/?`")

// named returns the folders of the product that a page names.
func named(t *testing.T, page string) []string {
	t.Helper()
	file, err := os.Open(filepath.Join(root, page))
	if !expect(t, err == nil, "no map: %v", err) {
		return nil
	}
	defer file.Close()
	var folders []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		for _, match := range folder.FindAllStringSubmatch(lines.Text(), -1) {
			folders = append(folders, match[1])
		}
	}
	expect(t, len(folders) > 0, "%s names no folder", page)
	return folders
}

func TestTheMapsNameWhatThereIs(t *testing.T) {
	for _, page := range []string{"README.md", "CONTRIBUTING.md", "test/README.md"} {
		for _, name := range named(t, page) {
			_, err := os.Stat(filepath.Join(root, name))
			expect(t, err == nil, "%s names %s: %v", page, name, err)
		}
	}
}

// A newcomer finds every package in CONTRIBUTING's map: itself, or what holds it.
func TestTheMapNamesEveryPackage(t *testing.T) {
	names := named(t, "CONTRIBUTING.md")
	for path := range packages(t) {
		words := strings.Split(path, "/")
		want := strings.Join(words[:min(2, len(words))], "/")
		expect(t, slices.Contains(names, want), "CONTRIBUTING.md does not name %s", path)
	}
}
