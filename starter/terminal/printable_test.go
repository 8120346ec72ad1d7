package terminal_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/starter/terminal"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"web is not ready": "web is not ready", "grün …": "grün …", "\x1b[2J": `\x1b[2J`, "a\nb": `a\nb`, "\xff": `\xff`,
	} {
		assert.Equal(t, want, terminal.Printable(text))
	}
}

// What goes into a file is not touched.
func TestNothingSteersATerminal(t *testing.T) {
	t.Parallel()
	const text = "log\tof \x1b[2J\x07 \u009b2J\n"
	var file bytes.Buffer
	_, err := terminal.NewWriter(&file).Write([]byte(text))
	require.NoError(t, err)
	assert.Equal(t, text, file.String())

	screen, process, err := pty.Open()
	require.NoError(t, err)
	defer screen.Close()
	_, err = terminal.NewWriter(process).Write([]byte(text))
	require.NoError(t, err)
	seen := make([]byte, 64)
	n, err := io.ReadAtLeast(screen, seen, len(text))
	require.NoError(t, err)
	require.NoError(t, process.Close())
	assert.NotContains(t, string(seen[:n]), "\x1b")
	assert.NotContains(t, string(seen[:n]), "\u009b")
	assert.Contains(t, string(seen[:n]), "?[2J?")
}
