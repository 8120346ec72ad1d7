package docs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/tools"
)

// page is a page of the documentation.
type page struct {
	path   string // below the checkout, with slashes
	blocks []block
}

// block is a block between fences.
type block struct {
	where string // for people
	// part and section are the headings of the second and third level above it.
	part, section string
	language      string
	text          string
	mark          mark
}

// mark is what comments say of a block: CONTRIBUTING.md, Style, has their form.
type mark struct {
	runBy  string // the folder and the name of the test that runs it
	notRun string // why none does
	file   string // as which the reader stores it
	prints bool   // it is what the commands before it print
}

const prompt = "$ "

// commands are those of the block, for a shell; empty if it has none. A block of language console is a screen: what follows a
// prompt are commands, and the rest is what they print.
func (b block) commands() string {
	switch b.language {
	case "sh", "bash":
		return b.text
	case "console":
		var commands []string
		for line := range strings.SplitSeq(b.text, "\n") {
			if command, is := strings.CutPrefix(line, prompt); is {
				commands = append(commands, command)
			}
		}
		return strings.Join(commands, "\n")
	}
	return ""
}

func checkout(t *testing.T) string {
	t.Helper()
	root, err := tools.Root()
	require.NoError(t, err)
	return root
}

// readPage reads a page by its path below the checkout.
func readPage(t *testing.T, path string) page {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(checkout(t), filepath.FromSlash(path)))
	require.NoError(t, err)
	read, err := parse(path, string(content))
	require.NoError(t, err)
	return read
}

var (
	fence   = regexp.MustCompile("^( *)```(.*)$")
	comment = regexp.MustCompile(`^ *<!-- ([a-z ]+?)(?:: *(.*?))? -->$`)
)

// parser goes through a page, line by line.
type parser struct {
	page
	whole   mark   // of all blocks that have none of their own
	pending mark   // of what comes next
	open    *block // nil between blocks
	indent  string // of the open block
	part    string // the last heading of the second level
	section string // and of the third, below it
}

func parse(path, content string) (page, error) {
	p := parser{page: page{path: path}}
	number := 0
	for line := range strings.Lines(content) {
		number++
		if err := p.line(number, strings.TrimRight(line, "\n")); err != nil {
			return page{}, fmt.Errorf("%s:%d: %w", path, number, err)
		}
	}
	if p.open != nil {
		return page{}, fmt.Errorf("%s: a block has no end", path)
	}
	return p.page, nil
}

func (p *parser) line(number int, line string) error {
	fenced := fence.FindStringSubmatch(line)
	switch {
	case p.open != nil && fenced != nil:
		p.open.text = strings.TrimSuffix(p.open.text, "\n")
		p.blocks, p.open = append(p.blocks, *p.open), nil
	case p.open != nil:
		p.open.text += strings.TrimPrefix(line, p.indent) + "\n"
	case fenced != nil:
		if p.pending.runBy == "" && p.pending.notRun == "" {
			p.pending.runBy, p.pending.notRun = p.whole.runBy, p.whole.notRun
		}
		p.indent = fenced[1]
		p.open = &block{
			where: fmt.Sprintf("%s:%d", p.path, number), part: p.part, section: p.section, language: fenced[2], mark: p.pending,
		}
		p.pending = mark{}
	case strings.HasPrefix(strings.TrimSpace(line), "<!--"):
		return p.pending.add(line)
	case p.pending != mark{}:
		if p.part != "" {
			return errors.New("the mark above stands neither before a block nor at the top of the page")
		}
		p.whole, p.pending = p.pending, mark{}
	}
	if p.open != nil {
		return nil
	}
	if part, is := strings.CutPrefix(line, "## "); is {
		p.part, p.section = part, ""
	} else if section, is := strings.CutPrefix(line, "### "); is {
		p.section = section
	}
	return nil
}

// add reads a line that is a comment.
func (m *mark) add(line string) error {
	found := comment.FindStringSubmatch(line)
	if found == nil {
		return fmt.Errorf("a comment is a mark in a line of its own, not %q", line)
	}
	switch key, value := found[1], found[2]; {
	case key == "run by" && len(strings.Fields(value)) == 2:
		m.runBy = value
	case key == "not run" && value != "":
		m.notRun = value
	case key == "file" && value != "":
		m.file = value
	case key == "prints" && value == "":
		m.prints = true
	default:
		return fmt.Errorf("unknown mark %q: they are run by: FOLDER TEST, not run: REASON, file: NAME, prints", line)
	}
	return nil
}

const somePage = `# A page

<!-- run by: test/some TestSome -->

A sentence.

## First

` + "```sh\nkubectl get nab\nkubectl get nar\n```" + `

<!-- prints -->
` + "```text\nNAME   AGE\n```" + `

1. In a list:

   <!-- not run: needs a cloud -->
   ` + "```console\n   $ tcld login\n     Hello.\n   ```" + `

<!-- file: backup.yaml -->
` + "```yaml\nspec: {}\n```\n"

func TestAPageHasBlocksWithTheirMarks(t *testing.T) {
	read, err := parse("docs/a.md", somePage)
	require.NoError(t, err)
	const whole = "test/some TestSome"
	assert.Equal(t, []block{
		{where: "docs/a.md:9", part: "First", language: "sh", text: "kubectl get nab\nkubectl get nar", mark: mark{runBy: whole}},
		{where: "docs/a.md:15", part: "First", language: "text", text: "NAME   AGE", mark: mark{runBy: whole, prints: true}},
		{where: "docs/a.md:22", part: "First", language: "console", text: "$ tcld login\n  Hello.", mark: mark{notRun: "needs a cloud"}},
		{where: "docs/a.md:28", part: "First", language: "yaml", text: "spec: {}", mark: mark{runBy: whole, file: "backup.yaml"}},
	}, read.blocks)
	assert.Equal(t, "kubectl get nab\nkubectl get nar", read.blocks[0].commands())
	assert.Empty(t, read.blocks[1].commands())
	assert.Equal(t, "tcld login", read.blocks[2].commands())
}

func TestAMarkThatIsOfNothingIsRefused(t *testing.T) {
	for title, test := range map[string]struct{ page, message string }{
		"unknown":           {"# A\n\n<!-- ran by: test/some TestSome -->\n", "docs/a.md:3: unknown mark"},
		"without a test":    {"# A\n\n<!-- run by: test/some -->\n", "unknown mark"},
		"without a reason":  {"# A\n\n<!-- not run: -->\n", "unknown mark"},
		"over two lines":    {"# A\n\n<!-- not run: so,\nand so -->\n", "in a line of its own"},
		"before a sentence": {"# A\n\n## B\n\n<!-- not run: so -->\n\nA sentence.\n", "docs/a.md:6: the mark above stands neither"},
		"without an end":    {"# A\n\n```sh\nls\n", "has no end"},
	} {
		t.Run(title, func(t *testing.T) {
			_, err := parse("docs/a.md", test.page)
			require.ErrorContains(t, err, test.message)
		})
	}
}
