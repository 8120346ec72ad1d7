package gate

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// provedFor is how long a package that passed need not run again, if nothing that it depends on has changed.
const provedFor = 24 * time.Hour

// live are the stacks that run each time: they are short, and show that the machine can run stacks.
var live = []string{"test/operations", "test/rebuild"}

// readDocs are the stacks whose tests compare the documents with what they describe.
var readDocs = []string{"test/deploy", "test/docs", "test/monitoring"}

// equipment are the packages that test the programs and the stand-ins of the tests: they depend on what they import alone.
var equipment = []string{"test/fdbsim", "test/tools"}

// Proof says that a package has passed, at its first run.
type Proof struct {
	Package string    `json:"package"`
	Commit  string    `json:"commit"`
	Time    time.Time `json:"time"`
	Tests   int       `json:"tests"`
	Seconds float64   `json:"seconds"`
	Thrice  []string  `json:"thrice,omitempty"` // the new and changed tests, which passed three times
}

// Proofs are the records of packages that passed, each under the hash of all that it depends on.
type Proofs struct{ Folder string }

// Find returns the proof under a hash, if it is of the last 24 hours and these tests passed three times.
func (p Proofs) Find(hash string, changed []string, now time.Time) (Proof, bool) {
	var proof Proof
	content, err := os.ReadFile(filepath.Join(p.Folder, hash))
	if err != nil || json.Unmarshal(content, &proof) != nil || now.Sub(proof.Time) > provedFor {
		return Proof{}, false
	}
	once := func(test string) bool { return !slices.Contains(proof.Thrice, test) }
	return proof, !slices.ContainsFunc(changed, once)
}

// Add records a proof, whole or not at all, and removes those that are too old.
func (p Proofs) Add(hash string, proof Proof) error {
	content, err := json.Marshal(proof)
	if err != nil {
		return fmt.Errorf("record that %s passed: %w", proof.Package, err)
	}
	if err := os.MkdirAll(p.Folder, 0o755); err != nil {
		return fmt.Errorf("record that %s passed: %w", proof.Package, err)
	}
	entries, err := os.ReadDir(p.Folder)
	if err != nil {
		return fmt.Errorf("record that %s passed: %w", proof.Package, err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && proof.Time.Sub(info.ModTime()) > 2*provedFor {
			_ = os.Remove(filepath.Join(p.Folder, entry.Name())) // the next one tries again
		}
	}
	made := filepath.Join(p.Folder, "."+hash)
	if err := os.WriteFile(made, content, 0o644); err != nil {
		return fmt.Errorf("record that %s passed: %w", proof.Package, err)
	}
	return os.Rename(made, filepath.Join(p.Folder, hash))
}

// Inputs is all that the result of a stack depends on, but its package.
type Inputs struct {
	Root string
	// Fixed are the version of Go, the flags, and what of the environment changes a test.
	Fixed []string
	// Programs is the folder of FoundationDB's own programs, if they are there.
	Programs string

	files []string
	sums  map[string][sha256.Size]byte
}

// environment names the variables that change what a test does.
var environment = []string{
	"HOLDFAST_TEST_LONG", "HOLDFAST_TEST_ROLLOUTS", "CGO_ENABLED", "GOFLAGS", "CHROMIUM_PATH", "KUBECTL_OADP",
}

// NewInputs reads which files the checkout has.
func NewInputs(ctx context.Context, root string, fixed []string) (*Inputs, error) {
	listed, err := git(ctx, root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	i := &Inputs{Root: root, Fixed: fixed, sums: map[string][sha256.Size]byte{}}
	i.files = strings.Split(strings.TrimRight(listed, "\x00"), "\x00")
	slices.Sort(i.files)
	i.files = slices.Compact(i.files)
	for _, name := range environment {
		i.Fixed = append(i.Fixed, name+"="+os.Getenv(name))
	}
	programs := filepath.Join(root, cmp.Or(os.Getenv("FDB_BIN_DIR"), "../shared/fdb"), "7.3")
	if named := os.Getenv("FDB_BIN_DIR"); filepath.IsAbs(named) {
		programs = filepath.Join(named, "7.3")
	}
	if _, err := os.Stat(programs); err == nil {
		i.Programs = programs
	}
	return i, nil
}

// Hash is that of all that a package of a stack depends on. imports are the folders of the checkout that the package imports.
func (i *Inputs) Hash(folder string, imports []string) (string, error) {
	all := sha256.New()
	fmt.Fprintln(all, folder, i.Fixed)
	for _, name := range i.files {
		if !dependsOn(folder, imports, name) {
			continue
		}
		if err := i.add(all, filepath.Join(i.Root, name), name); err != nil {
			return "", err
		}
	}
	if i.Programs != "" {
		programs, err := os.ReadDir(i.Programs)
		if err != nil {
			return "", err
		}
		for _, program := range programs {
			if !program.IsDir() {
				if err := i.add(all, filepath.Join(i.Programs, program.Name()), program.Name()); err != nil {
					return "", err
				}
			}
		}
	}
	return fmt.Sprintf("%x", all.Sum(nil)), nil
}

// add adds the content of a file. One that git knows and that is not there is another content.
func (i *Inputs) add(all io.Writer, file, name string) error {
	sum, known := i.sums[file]
	if !known {
		content, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if strings.HasSuffix(name, ".go") {
			content = withoutComments(content)
		}
		sum = sha256.Sum256(content)
		i.sums[file] = sum
	}
	_, err := fmt.Fprintf(all, "%s %x\n", name, sum)
	return err
}

// withoutComments returns the tokens of a Go source, which is what a comment does not change. Of one that uses cgo, or that
// cannot be read, it returns all.
func withoutComments(source []byte) []byte {
	if bytes.Contains(source, []byte(`import "C"`)) {
		return source
	}
	var tokens bytes.Buffer
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(source)), source, nil, scanner.ScanComments)
	for {
		_, kind, literal := s.Scan()
		switch {
		case s.ErrorCount > 0:
			return source
		case kind == token.EOF:
			return tokens.Bytes()
		case kind != token.COMMENT || strings.HasPrefix(literal, "//go:"):
			fmt.Fprintln(&tokens, kind, literal)
		}
	}
}

// isDocument: documents are in docs, or named like README.md; a page that a program has in it is no document.
func isDocument(name string) bool {
	stem, is := strings.CutSuffix(path.Base(name), ".md")
	return strings.HasPrefix(name, "docs/") || (is && stem == strings.ToUpper(stem))
}

// dependsOn tells whether the result of a stack may depend on a file of the checkout: on all but documents, the gate's own files,
// unit tests, and the tests of others.
func dependsOn(folder string, imports []string, name string) bool {
	top, _, _ := strings.Cut(name, "/")
	dir := filepath.ToSlash(filepath.Dir(name))
	within := func(other string) bool { return dir == other || strings.HasPrefix(dir, other+"/") }
	switch {
	case within(folder):
		return true
	case folder == "test/docs" && top == "test" && strings.HasSuffix(name, "_test.go"): // its marks name tests
		return true
	case slices.Contains([]string{".wip", ".ci", ".golangci.yaml", "LICENSE"}, top), name == "test/flakes.txt":
		return false
	case isDocument(name):
		return slices.Contains(readDocs, folder)
	case dir == ".", dir == "test", strings.HasPrefix(name, "test/tools/") && path.Ext(name) != ".go": // go.mod, go.sum and the like
		return true
	case slices.Contains(equipment, folder):
		return slices.Contains(imports, dir) && !strings.HasSuffix(name, "_test.go")
	case top == "test":
		used := append([]string{"test/env", "test/tools", "test/fdbsim"}, imports...)
		return slices.ContainsFunc(used, within) && !strings.HasSuffix(name, "_test.go")
	}
	return !strings.HasSuffix(name, "_test.go")
}
