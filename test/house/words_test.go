package house

import (
	"errors"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const glossary = "docs/glossary.md"

// banned matches the words in the first table of the glossary's last section.
func banned(t *testing.T) *regexp.Regexp {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, glossary))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## Words not used here\n")
	expect(t, found, "%s has not its last section", glossary)
	var words []string
	for line := range strings.Lines(section) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
			if strings.HasPrefix(line, "| `") {
				words = append(words, regexp.QuoteMeta(quoted[1]))
			}
		}
	}
	if !expect(t, len(words) > 10, "%s has no table of banned words", glossary) {
		t.SkipNow()
	}
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
			return unlessGone(err)
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
			return unlessGone(err)
		}
		number := 0
		for line := range strings.Lines(string(content)) {
			number++
			plain := camel.ReplaceAllString(line, "$1 $2")
			if word := words.FindString(plain); word != "" {
				expect(t, false, "%s:%d: %q, see the end of %s: %s", name, number, word, glossary, strings.TrimSpace(line))
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, checked, 300)
}

// unlessGone takes a file for no error that went while the folders were read: others work in them, too.
func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// told and asked match words of the glossary's second table, where a program would be the subject.
var (
	told  = regexp.MustCompile(`(?i)\b(tell|tells|told|telling)\b`)
	asked = regexp.MustCompile(`(?i)\b(asks|asked|asking|look|looks|looked|looking)\b`)
)

// meant are the texts in which a word of asked has the meaning that the glossary keeps.
var meant = []struct{ text, reason string }{
	{"LookAgain", "a wire name, for the administrator who has to look again"},
	{"until it asks again", "a member asks its coordinator for a turn"},
	{"until it asks for a turn again", "a member asks its coordinator for a turn"},
}

// tokens calls do for every name, comment and string of a file of Go.
func tokens(t *testing.T, path string, do func(line int, kind token.Token, text string)) {
	t.Helper()
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	file := token.NewFileSet().AddFile(path, -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	for {
		position, kind, text := s.Scan()
		switch kind {
		case token.EOF:
			return
		case token.IDENT, token.COMMENT, token.STRING:
			do(file.Line(position), kind, text)
		}
	}
}

// A program reports, sends, reads, checks or calls: it does not tell, and people are not shown that it asks or looks.
func TestNoProgramTellsAsksOrLooks(t *testing.T) {
	used := map[string]bool{}
	for folder, files := range packages(t) {
		for _, name := range files {
			path := filepath.Join(root, folder, name)
			tokens(t, path, func(line int, kind token.Token, text string) {
				word := told.FindString(camel.ReplaceAllString(text, "$1 $2"))
				if kind == token.STRING && word == "" {
					for _, each := range meant {
						used[each.text] = used[each.text] || strings.Contains(text, each.text)
						text = strings.ReplaceAll(text, each.text, "")
					}
					word = asked.FindString(camel.ReplaceAllString(text, "$1 $2"))
				}
				expect(t, word == "", "%s:%d: %q, see the end of %s: %s", path, line, word, glossary, text)
			})
		}
	}
	for _, each := range meant {
		expect(t, used[each.text], "no text has %q any more (%s)", each.text, each.reason)
	}
}
