package progress_test

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/starter/tenant/progress"
)

// sequence is one that steers the terminal.
var sequence = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// A person at a terminal sees one line that is drawn again in its place, and nothing of it afterwards.
func TestTheBarHasOneLineOfTheTerminal(t *testing.T) {
	t.Parallel()
	t.Run("wide", func(t *testing.T) {
		t.Parallel()
		written := drawn(t, 100, true)
		assert.Contains(t, written, "InProgress")
		assert.Contains(t, written, "3 of 4 items")
		assert.Contains(t, written, "75%")
		assert.Contains(t, written, "Closing, 3 of 3 items")
	})
	t.Run("narrow", func(t *testing.T) {
		t.Parallel()
		written := drawn(t, 24, true)
		assert.Contains(t, written, "InProgress, 3 of 4 ite")
		assert.NotContains(t, written, "%")
	})
	t.Run("nobody watches", func(t *testing.T) {
		t.Parallel()
		written := drawn(t, 100, false)
		assert.Contains(t, written, "] InProgress, 0 of 4 items\r\n")
		assert.NotContains(t, written, "\x1b")
	})
}

// drawn shows states on a terminal of that width, and returns what was written.
func drawn(t *testing.T, width int, watched bool) string {
	t.Helper()
	terminal, process, err := pty.Open()
	require.NoError(t, err)
	defer terminal.Close()
	require.NoError(t, pty.Setsize(terminal, &pty.Winsize{Rows: 10, Cols: uint16(width)}))
	seen := make(chan []byte, 1)
	go func() {
		var all bytes.Buffer
		_, _ = io.Copy(&all, terminal) // ends with an error when the process's side is closed
		seen <- all.Bytes()
	}()
	display := progress.NewDisplay(process, watched)
	long := strings.Repeat("a reason of many words ", 10)
	display.Show(progress.State{Phase: "QuotaExceeded", Message: long})
	for items := range 4 {
		display.Show(progress.State{Phase: "InProgress", Items: progress.Count{Done: items, Total: 4}})
	}
	display.Show(progress.State{Phase: "Finalizing", Items: progress.Count{Done: 3, Total: 3}}) // as Velero ends
	display.Show(progress.State{Phase: "Closing", Items: progress.Count{Done: 3, Total: 3}})
	display.Close()
	require.NoError(t, process.Close())
	written := string(<-seen)
	if !watched {
		return written
	}
	for frame := range strings.SplitSeq(written, "\r") {
		shown := []rune(strings.TrimRight(sequence.ReplaceAllString(frame, ""), " "))
		assert.LessOrEqual(t, len(shown), width, "%q", frame)
		assert.NotContains(t, frame, "\n", "it stays on its line")
	}
	assert.True(t, strings.HasSuffix(written, "\x1b[2K\r"), "the line is erased, and the cursor at its beginning: %q", written)
	return written
}
