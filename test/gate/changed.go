package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// notYetLanded is for how long before HEAD a commit may be part of the same change. Sessions of work are shorter.
const notYetLanded = 4 * time.Hour

// Landed is the commit that the change stands on: HOLDFAST_LANDED, else where a branch has left main, else, on main itself,
// the newest of its first parents that is four hours older than HEAD, or at which all stages have passed. It is empty where git
// does not know.
func Landed(ctx context.Context, root string, runs []Run) string {
	if named := os.Getenv("HOLDFAST_LANDED"); named != "" {
		return named
	}
	head, _ := git(ctx, root, "rev-parse", "HEAD") // without git there is no date either
	for _, branch := range []string{"main", "origin/main"} {
		if base, err := git(ctx, root, "merge-base", "HEAD", branch); err == nil && base != head {
			return strings.TrimSpace(base)
		}
	}
	listed, err := git(ctx, root, "log", "--first-parent", "--max-count=1000", "--format=%H %ct", "HEAD")
	if err != nil {
		return ""
	}
	var before int64
	for line := range strings.Lines(listed) {
		commit, date, _ := strings.Cut(strings.TrimSpace(line), " ")
		seconds, err := strconv.ParseInt(date, 10, 64)
		switch {
		case err != nil:
			return ""
		case before == 0: // HEAD
			before = seconds - int64(notYetLanded.Seconds())
		case seconds <= before, allPassed(runs, commit):
			return commit
		}
	}
	return ""
}

// Changed returns the test functions of the checkout that are not, with the same source, in the landed commit, by the folder of
// their package. A function that only moved is not changed, nor is one whose comments are.
func Changed(ctx context.Context, root, landed string) (map[string][]string, error) {
	if landed == "" {
		return nil, nil
	}
	names, err := git(ctx, root, "diff", "--name-only", "--no-renames", landed, "--", "*_test.go")
	if err != nil {
		return nil, err
	}
	untracked, err := git(ctx, root, "ls-files", "--others", "--exclude-standard", "--", "*_test.go")
	if err != nil {
		return nil, err
	}
	before, now := map[string]bool{}, map[string]map[string]string{}
	for name := range strings.FieldsSeq(names + untracked) {
		if old, err := git(ctx, root, "show", landed+":"+name); err == nil {
			for function, source := range functions(old) {
				before[function+"\n"+source] = true
			}
		}
		source, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		folder := path.Dir(name)
		if now[folder] == nil {
			now[folder] = map[string]string{}
		}
		maps.Copy(now[folder], functions(string(source)))
	}
	changed := map[string][]string{}
	for folder, found := range now {
		for _, function := range slices.Sorted(maps.Keys(found)) {
			if !before[function+"\n"+found[function]] {
				changed[folder] = append(changed[folder], function)
			}
		}
	}
	return changed, nil
}

// functions returns the test functions of a file with their sources, without comments; none of a file that cannot be parsed.
func functions(source string) map[string]string {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	found := map[string]string{}
	for _, declared := range file.Decls {
		function, is := declared.(*ast.FuncDecl)
		if !is || function.Recv != nil || !isTest(function.Name.Name) {
			continue
		}
		var text bytes.Buffer
		if printer.Fprint(&text, files, function) == nil {
			found[function.Name.Name] = strings.Join(strings.Fields(text.String()), " ")
		}
	}
	return found
}

func isTest(function string) bool {
	return (strings.HasPrefix(function, "Test") || strings.HasPrefix(function, "Fuzz")) && function != "TestMain"
}

// ChangedSince tells whether anything below the folders differs from the landed commit, or whether nobody knows.
func ChangedSince(ctx context.Context, root, landed string, folders ...string) bool {
	if landed == "" {
		return true
	}
	names, err := git(ctx, root, append([]string{"diff", "--name-only", landed, "--"}, folders...)...)
	return err != nil || strings.TrimSpace(names) != ""
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(output), nil
}
