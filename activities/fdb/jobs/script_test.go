package jobs_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/activities/fdb/jobs"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/fdb/expiry"
)

// patience is how long a test waits for an event.
const patience = time.Minute

// container is where a pod's script runs on this machine, with fdbbackup in a folder of its own.
type container struct {
	dir string
	env []string
}

// newContainer writes a shell script as fdbbackup. It notes its arguments, one in a line, and then runs tool.
func newContainer(t *testing.T, tool string) *container {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/bash\nprintf '%s\\n' \"$@\" '' >>\"$HOME/calls\"\n" + tool
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", "fdbbackup"), []byte(script), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tmp"), 0o755))
	return &container{dir: dir, env: []string{
		"PATH=" + filepath.Join(dir, "bin") + ":/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + filepath.Join(dir, "tmp"), "TZ=UTC",
		"FDB_CLUSTER_FILE=/conf/fdb.cluster", "HOLDFAST_RESULT=" + filepath.Join(dir, "result"),
	}}
}

// command returns what the pod of a step runs, without the dollar signs that Kubernetes removes.
func (c *container) command(t *testing.T, step contract.FDBPodStep) (*exec.Cmd, []string) {
	t.Helper()
	main := build(t, "", step).Spec.Containers[0]
	var args []string
	for _, argument := range main.Args {
		args = append(args, strings.ReplaceAll(argument, "$$", "$"))
	}
	command := exec.CommandContext(t.Context(), main.Command[0], append(main.Command[1:], args...)...)
	command.Env, command.Dir = c.env, c.dir
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return command, args
}

// run runs the script to its end and returns its result.
func (c *container) run(t *testing.T, step contract.FDBPodStep) (string, contract.FDBPodResult) {
	t.Helper()
	command, args := c.command(t, step)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	message := c.message(t)
	assert.LessOrEqual(t, len(message), 4096)
	left, err := os.ReadDir(filepath.Join(c.dir, "tmp"))
	require.NoError(t, err)
	assert.Empty(t, left, "the script cleans up")
	result, err := jobs.ParseResult(message, args)
	require.NoError(t, err, message)
	return message, result
}

func (c *container) message(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(c.dir, "result"))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	return string(content)
}

// calls returns the arguments of each call of fdbbackup.
func (c *container) calls(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(c.dir, "calls"))
	require.NoError(t, err)
	var calls []string
	for call := range strings.SplitSeq(strings.TrimSuffix(string(content), "\n\n"), "\n\n") {
		calls = append(calls, strings.ReplaceAll(call, "\n", " "))
	}
	return calls
}

const (
	describeA = "describe -d blobstore://lab@s3.local/a?bucket=fdb-backups --deep --json --version-timestamps -C /conf/fdb.cluster"
	expireA   = "expire -d blobstore://lab@s3.local/a?bucket=fdb-backups -C /conf/fdb.cluster --expire-before-timestamp 2026/11/18.10:06:40+0000"
)

// describing answers describe, from its second call on with the second range.
const describing = `if [ "$1" = describe ]; then
	oldest=5; [ -e "$HOME/described" ] && oldest=7; touch "$HOME/described"
	echo '{"SchemaVersion":"1.0.0","URL":"'"$3"'","Restorable":true,"Partitioned":false,"Snapshots":['"$SNAPSHOTS"'],"TotalSnapshotBytes":1,"MinLogBegin":{"Version":1},"MinRestorablePoint":{"Version":'$oldest',"Timestamp":"2026/11/20.16:01:46+0000","EpochSeconds":1795190506},"MaxRestorablePoint":{"Version":9,"EpochSeconds":1795190606}}'
	exit 0
fi
`

func TestTheScriptExpires(t *testing.T) {
	c := newContainer(t, describing+"echo 'All data before version 6 has been deleted.'")
	_, result := c.run(t, expireStep())
	latest := &contract.FDBPoint{Version: 9, Time: 1795190606}
	assert.Equal(t, contract.FDBPodResult{
		Before: &contract.FDBContainer{
			URL: url("a"), Restorable: true, Oldest: &contract.FDBPoint{Version: 5, Time: 1795190506}, Latest: latest,
		},
		After: &contract.FDBContainer{
			URL: url("a"), Restorable: true, Oldest: &contract.FDBPoint{Version: 7, Time: 1795190506}, Latest: latest,
		},
	}, result)
	assert.Equal(t, []string{describeA, expireA + " --restorable-after-timestamp 2026/11/18.11:05:40+0000", describeA}, c.calls(t))

	plain := expireStep()
	plain.Expire.RestorableAfter = 0
	c = newContainer(t, describing)
	c.run(t, plain)
	assert.Equal(t, []string{describeA, expireA, describeA}, c.calls(t))
}

func TestTheScriptReportsARefusal(t *testing.T) {
	c := newContainer(t, describing+`echo 'ERROR: Requested expiration would be unsafe.  Backup would not meet minimum restorability.  Use --force to delete data anyway.' >&2
echo 'Fatal Error: Cannot expire requested data from backup without violating minimum restorability' >&2; exit 1`)
	_, result := c.run(t, expireStep())
	require.NotNil(t, result.Failure)
	assert.Equal(t, contract.FDBClassUnsafe, result.Failure.Class)
	assert.EqualValues(t, 5, result.Before.Oldest.Version)
	assert.Nil(t, result.After)
	require.Len(t, c.calls(t), 2)
	for _, call := range c.calls(t) {
		assert.NotContains(t, call+" ", " -f ")
		assert.NotContains(t, call, "--force")
	}
}

func TestTheScriptExpiresNothingWithoutADescription(t *testing.T) {
	for title, test := range map[string]struct {
		tool string
		want contract.FDBClass
	}{
		"no such container":           {"echo 'ERROR: Backup does not exist' >&2; exit 1", contract.FDBClassMissing},
		"a database without answer":   {"exec sleep 60", contract.FDBClassTimeout},
		"no tool":                     {"exit 127", contract.FDBClassOther},
		"killed when out of memory":   {"kill -9 $BASHPID", contract.FDBClassOther},
		"a store that denies access":  {"echo 'ERROR: HTTP response code not received or indicated failure' >&2; exit 1", contract.FDBClassDenied},
		"an error on standard output": {"echo 'Unable to read cluster file'; exit 1", contract.FDBClassClusterFile},
	} {
		t.Run(title, func(t *testing.T) {
			c := newContainer(t, test.tool)
			c.env = append(c.env, "HOLDFAST_DESCRIBE_SECONDS=1")
			_, result := c.run(t, expireStep())
			require.NotNil(t, result.Failure)
			assert.Equal(t, test.want, result.Failure.Class, result.Failure.Message)
			assert.Equal(t, test.want == contract.FDBClassMissing, result.Before != nil && result.Before.Missing)
			assert.Equal(t, []string{describeA}, c.calls(t))
		})
	}
}

func TestTheScriptReportsThatTheNewRangeCannotBeRead(t *testing.T) {
	c := newContainer(t, `[ "$1" = expire ] && { touch "$HOME/expired"; exit 0; }
[ -e "$HOME/expired" ] && { echo 'ERROR: Network connection failed' >&2; exit 1; }
`+describing)
	_, result := c.run(t, expireStep())
	assert.Nil(t, result.Failure)
	require.NotNil(t, result.After)
	require.NotNil(t, result.After.Failure)
	assert.Equal(t, contract.FDBClassStore, result.After.Failure.Class)
}

func TestTheScriptDeletesAllAndGoesOnAfterAFailure(t *testing.T) {
	step := deleteStep()
	step.Delete = append(step.Delete, place("c"), place("d"))
	c := newContainer(t, `case $3 in
*/a*) echo 'Deleting...'; echo '68 objects deleted' ;;
*/b*) echo 'ERROR: Disk i/o operation failed' >&2; exit 1 ;;
*/c*) echo 'ERROR: Backup does not exist' >&2; echo 'Fatal Error: Backup does not exist' >&2; exit 1 ;;
*/d*) exit 0 ;;
esac`)
	_, result := c.run(t, step)
	assert.Equal(t, []string{url("a"), url("c"), url("d")}, result.Deleted)
	require.NotNil(t, result.Failure)
	assert.Equal(t, contract.FDBClassStore, result.Failure.Class)
	var want []string
	for _, place := range step.Delete {
		want = append(want, "delete -d "+place.URL)
	}
	assert.Equal(t, want, c.calls(t), "the cluster file may not exist")
}

func TestTheResultFitsWhateverTheToolSays(t *testing.T) {
	var snapshots []string
	for i := range 1000 {
		snapshots = append(snapshots, fmt.Sprintf(`{"Start":{"Version":%d,"EpochSeconds":1},"End":{"Version":%d},"Restorable":false,`+
			`"TotalBytes":609102,"PercentageExpired":0}`, i, i+1))
	}
	c := newContainer(t, describing)
	c.env = append(c.env, "SNAPSHOTS="+strings.Join(snapshots, ","))
	message, result := c.run(t, expireStep())
	assert.True(t, result.After.Restorable)
	assert.NotContains(t, message, "609102")

	noise := `for i in {1..300}; do echo "ERROR: line $i of http://user:hush@host/ is loud"; done >&2; printf '\001\377\n' >&2; exit 1`
	message, result = newContainer(t, noise).run(t, expireStep())
	assert.Contains(t, result.Failure.Message, "is loud")
	assert.NotContains(t, message, "hush")

	step := deleteStep()
	for i := range expiry.MaxDelete - 2 {
		step.Delete = append(step.Delete, place(fmt.Sprintf("many/%d", i)))
	}
	message, result = newContainer(t, noise).run(t, step)
	assert.Less(t, len(message), 2048, "Kubernetes keeps 12 KiB for all containers of a pod")
	assert.Empty(t, result.Deleted)
	assert.NotNil(t, result.Failure)
	_, result = newContainer(t, "exit 0").run(t, step)
	assert.Len(t, result.Deleted, expiry.MaxDelete, "all of them are reported")
	step.Delete = append(step.Delete, place("z"))
	_, err := jobs.Pod(backup(""), version, step, time.Hour)
	require.ErrorContains(t, err, "100 containers at most")
	forged := []string{"delete", strings.Repeat("u", 64<<10)}
	_, err = jobs.ParseResult("delete 1 0\nend\n", forged)
	require.ErrorContains(t, err, "more arguments")
}

func TestArgumentsAreNeverRun(t *testing.T) {
	for _, evil := range []string{
		`blobstore://lab@s3.local/a?bucket=b'; touch pwned; '`, "`touch pwned`", "$(touch pwned)", `"; touch pwned #`, "a b\tc", "*", "$HOME",
		"$$(HOME)", "-f",
	} {
		step := deleteStep()
		step.Delete = []contract.FDBPlace{{URL: evil}}
		c := newContainer(t, "exit 0")
		_, result := c.run(t, step)
		assert.Equal(t, []string{evil}, result.Deleted)
		assert.Equal(t, []string{"delete -d " + evil}, c.calls(t))
		expire := expireStep()
		expire.Expire.URL = evil
		c = newContainer(t, "echo '{\"Restorable\":false}'")
		c.run(t, expire)
		assert.Contains(t, c.calls(t)[1], "expire -d "+evil+" -C ")
		assert.NoFileExists(t, filepath.Join(c.dir, "pwned"))
	}
}

// runs reports whether a process has not ended. One that has ended stays a zombie until its parent asks for it, which may be long.
func runs(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // Linux alone has it
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// Deleting a pod must not leave a tool running until it is killed.
func TestTheToolEndsWithThePod(t *testing.T) {
	for title, test := range map[string]struct {
		tool string
		step contract.FDBPodStep
	}{
		"describe": {`touch "$HOME/hangs"; exec sleep 3600`, expireStep()},
		"expire":   {describing + `touch "$HOME/hangs"; exec sleep 3600`, expireStep()},
		"delete":   {`touch "$HOME/hangs"; exec sleep 3600`, deleteStep()},
	} {
		t.Run(title, func(t *testing.T) {
			c := newContainer(t, `echo $$ >"$HOME/pid"`+"\n"+test.tool)
			command, args := c.command(t, test.step)
			var output bytes.Buffer
			command.Stdout, command.Stderr = &output, &output
			require.NoError(t, command.Start())
			t.Cleanup(func() { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) })
			eventually.Succeeds(t, patience, func() error {
				_, err := os.Stat(filepath.Join(c.dir, "hangs"))
				return err
			})
			require.NoError(t, command.Process.Signal(syscall.SIGTERM), "only the first process gets it, as in a container")
			ended := make(chan error, 1)
			go func() { ended <- command.Wait() }()
			select {
			case err := <-ended:
				require.Error(t, err)
			case <-time.After(patience):
				require.Fail(t, "the script does not end")
			}
			assert.Equal(t, 143, command.ProcessState.ExitCode(), output.String())
			content, err := os.ReadFile(filepath.Join(c.dir, "pid"))
			require.NoError(t, err)
			var pid int
			_, err = fmt.Sscan(string(content), &pid)
			require.NoError(t, err)
			eventually.IsTrue(t, patience, "the tool has ended", func() bool { return !runs(pid) })
			_, err = jobs.ParseResult(c.message(t), args)
			assert.Error(t, err, "there is no result")
		})
	}
}

func TestDescriptionsOfTheRealToolAreUnderstood(t *testing.T) {
	for _, name := range []string{"41-describe-vt-wrong-other-cluster", "40-describe-deep-json"} {
		content, err := os.ReadFile(filepath.Join("../../../test/fdbsim/testdata/transcripts", name+".txt"))
		require.NoError(t, err)
		_, stdout, _ := strings.Cut(string(content), "--- stdout\n")
		stdout, _, _ = strings.Cut(stdout, "--- stderr")
		c := newContainer(t, `[ "$1" = expire ] || cat "$HOME/answer"`)
		require.NoError(t, os.WriteFile(filepath.Join(c.dir, "answer"), []byte(stdout), 0o600))
		_, result := c.run(t, expireStep())
		want, err := fdb.ParseDescription([]byte(stdout))
		require.NoError(t, err)
		want.URL, want.LogEnd = url("a"), nil // the result does not have the end of the log
		assert.Equal(t, &want, result.Before)
		assert.Equal(t, &want, result.After)
	}
}
