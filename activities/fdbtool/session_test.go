package fdbtool_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/activities/fdbtool"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestToolGetsTheClusterFileAndNothingOfTheWorkersEnvironment(t *testing.T) {
	t.Setenv("HOLDFAST_TEST_SECRET", "of the worker")
	t.Setenv("FDB_CLUSTER_FILE", "/etc/foundationdb/fdb.cluster")
	t.Setenv("FDB_TLS_CA_FILE", "/of/the/worker")
	runner := tool(t, `echo "args $*"`, `/usr/bin/env`, `pwd`, `cat "$FDB_BLOB_CREDENTIALS" "$FDB_TLS_KEY_FILE"`)
	all := access()
	all.TLS = fdbtool.TLS{Certificate: []byte("certificate"), Key: []byte("the key"), VerifyPeers: "Check.Valid=1"}
	session := open(t, runner, all)
	output, trouble := session.Run(t.Context(), fdbtool.Status, []string{"status", "-t", "x"})
	require.Nil(t, trouble)
	lines := strings.Split(string(output), "\n")
	assert.Equal(t, "args status -t x -C "+session.ClusterFile(), lines[0])
	var names []string
	for _, line := range lines[1:] {
		if name, _, found := strings.Cut(line, "="); found && !slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_"}, name) {
			names = append(names, name)
		}
	}
	assert.ElementsMatch(t, []string{
		"TZ", "HOME", "TMPDIR", "FDB_BLOB_CREDENTIALS", "FDB_TLS_CERTIFICATE_FILE", "FDB_TLS_KEY_FILE", "FDB_TLS_VERIFY_PEERS",
	}, names, "shells add PWD, OLDPWD, SHLVL and _ themselves")
	assert.Contains(t, lines, "TZ=UTC")
	assert.Contains(t, lines, filepath.Dir(session.ClusterFile()), "where it stands")
	assert.Contains(t, string(output), file+"the key")
}

func TestSecretsLieInPrivateFilesAndGoWithTheSession(t *testing.T) {
	runner := tool(t, "exit 0")
	all := access()
	all.TLS = fdbtool.TLS{Certificate: []byte("c"), Key: []byte("k"), CA: []byte("a"), Password: "p"}
	session, trouble, err := runner.Open(all)
	require.NoError(t, err)
	require.Nil(t, trouble)
	folder := filepath.Dir(session.ClusterFile())
	count := 0
	require.NoError(t, filepath.WalkDir(runner.TempDir, func(path string, entry os.DirEntry, err error) error {
		require.NoError(t, err)
		if path != runner.TempDir {
			info, err := entry.Info()
			require.NoError(t, err)
			assert.Zero(t, info.Mode().Perm()&0o077, "%s is %s", path, info.Mode())
			count++
		}
		return nil
	}))
	assert.Equal(t, 8, count, "the worker's folder and its lock, the session's folder and five files")
	content, err := os.ReadFile(session.ClusterFile())
	require.NoError(t, err)
	assert.Equal(t, connection+"\n", string(content))
	require.NoError(t, session.Close())
	assert.NoDirExists(t, folder)
}

func TestFailuresShowNoSecrets(t *testing.T) {
	cases := map[string]struct {
		script    string
		class     contract.FDBClass
		mentions  string
		operation fdbtool.Operation
	}{
		"an error that quotes the credentials file": {
			`printf 'ERROR: odd file: ' >&2; cat "$FDB_BLOB_CREDENTIALS" >&2; exit 1`, contract.FDBClassOther, "odd file", fdbtool.Status,
		},
		"an error that holds a secret as it is": {
			`printf '%s\n' 'ERROR: rejected s3cr3t/+"\key' >&2; exit 1`, contract.FDBClassOther, "rejected", fdbtool.Status,
		},
		"an error that holds a secret as a URL has it": {
			`echo "ERROR: rejected s3cr3t%2F%2B%22%5Ckey" >&2; exit 1`, contract.FDBClassOther, "rejected", fdbtool.Status,
		},
		"an error that holds the token, on the output": {
			`echo "rejected t0ken-of-lab"; exit 1`, contract.FDBClassOther, "rejected", fdbtool.Status,
		},
		"an error with a word that holds the short secret of another account": {
			`echo "ERROR: Backup does not exist" >&2; exit 1`, contract.FDBClassMissing, "no backup", fdbtool.Probe,
		},
		"an error after much noise": {
			`head -c 3000000 /dev/zero | tr '\0' x >&2; echo >&2; echo "ERROR: Backup does not exist" >&2; exit 1`,
			contract.FDBClassMissing, "no backup", fdbtool.Probe,
		},
		"an answer without end": {
			`head -c 30000000 /dev/zero; exit 0`, contract.FDBClassTooMuch, "printed more than", fdbtool.Describe,
		},
		"an exit without a word": {`exit 3`, contract.FDBClassOther, "exit code 3", fdbtool.Abort},
		"a tool that something kills": {
			`kill -9 $$`, contract.FDBClassTimeout, "fdbbackup start was killed", fdbtool.Start,
		},
		"a tool that dies of its own fault": { // as fdbbackup start does now and then where it may not make the bucket
			`echo "SIGNAL: Segmentation fault (11)" >&2; kill -SEGV $$`, contract.FDBClassTimeout,
			"fdbbackup start was killed (segmentation fault)", fdbtool.Start,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			session := open(t, tool(t, c.script), access())
			output, trouble := session.Run(t.Context(), c.operation, []string{"sub"})
			require.NotNil(t, trouble)
			assert.Equal(t, c.class, trouble.Class, trouble.Message)
			assert.Contains(t, trouble.Message, c.mentions)
			assert.LessOrEqual(t, len(trouble.Message), 512)
			for _, hidden := range []string{secret, `s3cr3t/+\"\\key`, "s3cr3t%2F%2B%22%5Ckey", "t0ken-of-lab", "s3cr3t"} {
				assert.NotContains(t, trouble.Message, hidden)
				assert.NotContains(t, string(output), hidden)
			}
		})
	}
}

func TestToolIsKilledWithAllThatItStarted(t *testing.T) {
	const stubborn = `sh -c 'trap "" TERM; echo $$ >child; while :; do sleep 1; done' & ` +
		`trap "" TERM; echo $$ >own; while :; do sleep 1; done`
	cases := map[string]struct {
		end  func(t *testing.T) (context.Context, func())
		says string
	}{
		"when its time is over": {
			func(t *testing.T) (context.Context, func()) {
				ctx := overdue{t.Context(), make(chan struct{})}
				return ctx, func() { close(ctx.done) }
			}, "no answer within",
		},
		"when its activity is cancelled": {
			func(t *testing.T) (context.Context, func()) {
				ctx, cancel := context.WithCancel(t.Context())
				return ctx, cancel
			}, "was stopped before it ended",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			session := open(t, tool(t, stubborn), access())
			folder := filepath.Dir(session.ClusterFile())
			ctx, end := c.end(t)
			ended := make(chan *contract.FDBFailure, 1)
			go func() {
				_, trouble := session.Run(ctx, fdbtool.Status, []string{"status"})
				ended <- trouble
			}()
			started := pids(t, filepath.Join(folder, "own"), filepath.Join(folder, "child"))
			end()
			select {
			case trouble := <-ended:
				require.NotNil(t, trouble)
				assert.Equal(t, contract.FDBClassTimeout, trouble.Class)
				assert.Contains(t, trouble.Message, c.says)
			case <-time.After(patience):
				require.FailNow(t, "the tool was not stopped")
			}
			requireGone(t, started)
		})
	}
}

// overdue is a context whose deadline comes when a test says so.
type overdue struct {
	context.Context
	done chan struct{}
}

func (o overdue) Done() <-chan struct{} { return o.done }

func (o overdue) Err() error {
	select {
	case <-o.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestToolIsNotStartedOnceItsActivityHasEnded(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	session := open(t, tool(t, "echo >"+marker), access())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, trouble := session.Run(ctx, fdbtool.Start, []string{"start"})
	require.NotNil(t, trouble)
	assert.Equal(t, contract.FDBClassTimeout, trouble.Class)
	assert.NoFileExists(t, marker)
}

func TestURLsThatNoToolIsGiven(t *testing.T) {
	const blob = "blobstore://lab@127.0.0.1:7070/x?bucket=lab&secure_connection=0"
	cases := map[string]struct {
		args  []string
		files bool
		runs  bool
	}{
		"an object store":                         {[]string{"describe", "-d", blob}, false, true},
		"a file":                                  {[]string{"describe", "-d", "file:///etc"}, false, false},
		"a file, as another option":               {[]string{"describe", "--destcontainer", "file:///etc"}, false, false},
		"a file, allowed":                         {[]string{"describe", "-d", "file:///tmp/x"}, true, true},
		"a file that leads elsewhere":             {[]string{"describe", "-d", "file:///tmp/../etc"}, true, false},
		"a relative file":                         {[]string{"describe", "-d", "file://etc"}, true, false},
		"another scheme":                          {[]string{"describe", "-d", "http://169.254.169.254/"}, true, false},
		"a secret in the URL":                     {[]string{"describe", "-d", "blobstore://lab:s3cret@h/x?bucket=lab"}, true, false},
		"no URL":                                  {[]string{"describe", "-d", "/etc/passwd"}, true, false},
		"an option instead of a URL":              {[]string{"describe", "-d", "--blob-credentials=/etc/passwd"}, true, false},
		"a range of keys that looks like a URL":   {[]string{"start", "-d", blob, "-k", "file://a file://b"}, false, true},
		"a range of keys, and a file as the rest": {[]string{"start", "-k", "a b", "-d", "FILE:///etc"}, true, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			marker := filepath.Join(t.TempDir(), "ran")
			runner := tool(t, "echo >"+marker)
			runner.AllowFileURLs, runner.Folders = c.files, append([]string{filepath.Dir(marker)}, shell...)
			session := open(t, runner, access())
			_, trouble := session.Run(t.Context(), fdbtool.Describe, c.args)
			if c.runs {
				require.Nil(t, trouble)
				assert.FileExists(t, marker)
				return
			}
			require.NotNil(t, trouble)
			assert.Equal(t, contract.FDBClassBadURL, trouble.Class)
			assert.NotContains(t, trouble.Message, "s3cret")
			assert.NoFileExists(t, marker)
		})
	}
}
