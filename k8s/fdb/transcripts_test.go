package fdb_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// transcript is the output of a real tool.
type transcript struct {
	command        string
	stdout, stderr string
	exit           int
	// hung: it did not end by itself.
	hung bool
}

const transcripts = "../../test/fdbsim/testdata/transcripts"

var transcriptForm = regexp.MustCompile(`(?s)^\$ (.*?)\n# date: [^\n]*\n--- stdout\n(.*)--- stderr\n(.*)--- exit code: ([0-9]+)([^\n]*)\n`)

func readTranscript(t *testing.T, name string) transcript {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(transcripts, name+".txt"))
	require.NoError(t, err)
	parts := transcriptForm.FindStringSubmatch(string(content))
	require.NotNil(t, parts, "%s is no transcript", name)
	exit, err := strconv.Atoi(parts[4])
	require.NoError(t, err)
	return transcript{command: parts[1], stdout: parts[2], stderr: parts[3], exit: exit, hung: strings.Contains(parts[5], "killed")}
}

// transcriptsOf returns the names of the transcripts whose command begins so.
func transcriptsOf(t *testing.T, command string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(transcripts, "*.txt"))
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.HasPrefix(string(content), "$ "+command+" ") && transcriptForm.Match(content) {
			names = append(names, strings.TrimSuffix(filepath.Base(file), ".txt"))
		}
	}
	require.NotEmpty(t, names, "no transcript of %s", command)
	return names
}
