package env

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStopLeavesTheLogsWhereTheGateWantsThem(t *testing.T) {
	kept := t.TempDir()
	t.Setenv("HOLDFAST_TEST_LOGS", kept)
	e, err := prepare(Options{})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(e.LogDir(), "velero.log"), []byte("the disk is full\n"), 0o600))
	e.Stop()
	e.Stop()
	require.NoDirExists(t, e.Dir())
	content, err := os.ReadFile(filepath.Join(kept, filepath.Base(e.Dir()), "velero.log"))
	require.NoError(t, err)
	require.Equal(t, "the disk is full\n", string(content))
}

// A process of Holdfast that panics is no matter of chance, whatever became of the test.
func TestAPanicOfAProcessIsTold(t *testing.T) {
	for title, test := range map[string]struct{ log, want string }{
		"a panic":            {"started\npanic: boom\n\ngoroutine 7 [running]:\nmain.main()\n", "panic: boom"},
		"a map of two":       {"fatal error: concurrent map writes\n\ngoroutine 7 [running]:\n", "fatal error: concurrent map writes"},
		"a word":             {"panic: no stack follows\n", ""},
		"one in a log line":  {`{"msg":"panic: recovered"}` + "\ngoroutine 7 [running]:\n", ""},
		"nothing of it":      {"started\nended\n", ""},
		"a line without end": {"panic: boom\n\ngoroutine 7", "panic: boom"},
	} {
		t.Run(title, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "worker.log")
			require.NoError(t, os.WriteFile(path, []byte(test.log), 0o600))
			var said strings.Builder
			TellPanic(&said, "worker-2", path)
			if test.want == "" {
				require.Empty(t, said.String())
			} else {
				require.Equal(t, NeverForgiven+"worker-2 has ended: "+test.want+"\n", said.String())
			}
		})
	}
	require.Empty(t, panicIn(filepath.Join(t.TempDir(), "none")))
}
