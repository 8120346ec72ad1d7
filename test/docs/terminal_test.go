package docs_test

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// endOfBlock is what the shell prints after each block.
	endOfBlock = "--- end of block ---"
	// blockLimit is how long a block may take: longer than the commands of any wait.
	blockLimit = 35 * time.Minute
	// longestLine is how long a line may be that a command prints.
	longestLine = 1 << 20
)

// terminal is a bash in which blocks run one after the other, as in a person's terminal. The first command that fails ends it.
type terminal struct {
	t       *testing.T
	command *exec.Cmd
	input   io.WriteCloser
	lines   chan string
}

// openTerminal starts a shell in a folder with these variables, and no others. It ends with the test.
func openTerminal(t *testing.T, folder string, environment []string) *terminal {
	t.Helper()
	sh := &terminal{t: t, command: exec.CommandContext(t.Context(), "bash", "-euo", "pipefail"), lines: make(chan string)}
	sh.command.Dir, sh.command.Env = folder, environment
	// What blocks leave in the background ends with the test; by the trap below also if that is killed.
	sh.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	sh.command.Cancel = func() error { return syscall.Kill(-sh.command.Process.Pid, syscall.SIGKILL) }
	sh.command.WaitDelay = time.Second
	var err error
	sh.input, err = sh.command.StdinPipe()
	require.NoError(t, err)
	output, writer := io.Pipe()
	sh.command.Stdout, sh.command.Stderr = writer, writer
	require.NoError(t, sh.command.Start())
	go func() { _ = writer.CloseWithError(sh.command.Wait()) }()
	go func() {
		defer close(sh.lines)
		scanner := bufio.NewScanner(output)
		scanner.Buffer(nil, longestLine)
		for scanner.Scan() {
			sh.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() { _ = sh.input.Close() })
	_, err = fmt.Fprintln(sh.input, "trap 'trap - EXIT; kill -- -$$' EXIT")
	require.NoError(t, err)
	return sh
}

// run runs commands and returns what they printed. The title says which they are.
func (sh *terminal) run(title, commands string) string {
	sh.t.Helper()
	// They must not read what is next for the shell, as kubectl would in a loop.
	_, err := fmt.Fprintf(sh.input, "{\n%s\n} </dev/null\necho %q\n", commands, endOfBlock)
	require.NoError(sh.t, err, "%s: the shell has ended", title)
	begin := time.Now()
	limit := time.AfterFunc(blockLimit, func() { _ = sh.command.Cancel() })
	defer limit.Stop()
	var printed []string
	for line := range sh.lines {
		if last, ended := strings.CutSuffix(line, endOfBlock); ended {
			if last != "" { // what the block printed does not end with a line break
				printed = append(printed, last)
			}
			sh.t.Logf("%s, %s:\n%s", title, time.Since(begin).Round(time.Second), strings.Join(printed, "\n"))
			return strings.Join(printed, "\n")
		}
		printed = append(printed, line)
	}
	require.Fail(sh.t, "a documented command failed", "%s, after %s\n\n%s\n\nprinted:\n%s",
		title, time.Since(begin).Round(time.Second), commands, strings.Join(printed, "\n"))
	return ""
}

// anything stands in a page for what is different each time.
const anything = "…"

// differs compares what a page says that commands print with what they printed, and returns the first line that they did not
// print, or nothing. Each line of the page must be among the printed ones, in this order. "…" is anything, and so is the width
// of a gap.
func differs(said, printed string) string {
	rest := strings.Split(printed, "\n")
	for line := range strings.SplitSeq(said, "\n") {
		at, is := 0, pattern(line)
		for at < len(rest) && !is.MatchString(rest[at]) {
			at++
		}
		if at == len(rest) {
			return fmt.Sprintf("%q is not in what is left of it:\n%s", line, strings.Join(rest, "\n"))
		}
		rest = rest[at+1:]
	}
	return ""
}

func pattern(line string) *regexp.Regexp {
	fields := strings.Fields(line)
	for i, field := range fields {
		fields[i] = strings.ReplaceAll(regexp.QuoteMeta(field), anything, ".*")
	}
	return regexp.MustCompile(`^\s*` + strings.Join(fields, `\s+`) + `\s*$`)
}

func TestWhatIsPrintedIsComparedByItsWords(t *testing.T) {
	const printed = "NAME    PHASE     AGE\nnightly Created   7s\nother   New       1s"
	for title, test := range map[string]struct {
		said string
		same bool
	}{
		"gaps may be wider":       {"NAME  PHASE  AGE\nnightly  Created  7s", true},
		"anything":                {"nightly   Created   …", true},
		"within a word":           {"n…y   Created   7s", true},
		"lines may be left out":   {"NAME PHASE AGE\nother New 1s", true},
		"another order":           {"other New 1s\nnightly Created 7s", false},
		"another word":            {"nightly   New   …", false},
		"part of a line":          {"nightly   Created", false},
		"a character of patterns": {"nightly   Create.   7s", false},
	} {
		t.Run(title, func(t *testing.T) {
			assert.Equal(t, test.same, differs(test.said, printed) == "", differs(test.said, printed))
		})
	}
}

func TestATerminalKeepsItsVariables(t *testing.T) {
	sh := openTerminal(t, t.TempDir(), []string{"PATH=/usr/bin:/bin"})
	assert.Equal(t, "one", sh.run("first", "name=two\necho one"))
	assert.Equal(t, "no break", sh.run("open end", "printf 'no break'"))
	assert.Equal(t, "two\n…", sh.run("second", "echo \"$name\"\ncat\ncat <<EOF\n…\nEOF"))
}
