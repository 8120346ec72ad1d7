package fdb_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
)

func TestTheCommandsOfBackupAgent(t *testing.T) {
	method, known := fdb.MethodOf(fdbv1alpha1.BackupTypeAgent)
	require.True(t, known)
	const url = "blobstore://lab@h/p?bucket=b"
	for want, args := range map[string][]string{
		"start -d " + url + " -t t1 -s 40 -z": method.Start(fdb.Command{URL: url, Tag: "t1", SnapshotPeriodSeconds: 40}),
		"start -d " + url + ` -t t1 -s 40 -z -k a b -k \x00\\ \xff`: method.Start(fdb.Command{
			URL: url, Tag: "t1", SnapshotPeriodSeconds: 40, KeyRanges: []string{"a b", `\x00\\ \xff`},
		}),
		"start -d " + url + " -t t1 -s 40 -z -n":                                    method.DryStart(fdb.Command{URL: url, Tag: "t1", SnapshotPeriodSeconds: 40}),
		"modify -t t1 -d " + url + " --verify-uid 00000000000000000000000000000000": method.DryWrite(url, "t1"),
		"modify -t t1 -s 50":                    method.Modify(fdb.Command{Tag: "t1", SnapshotPeriodSeconds: 50}),
		"modify -t t1 -d " + url:                method.Modify(fdb.Command{Tag: "t1", URL: url}),
		"modify -t t1 -s 50 -d " + url:          method.Modify(fdb.Command{Tag: "t1", URL: url, SnapshotPeriodSeconds: 50}),
		"abort -t t1":                           method.Abort("t1"),
		"abort --tagname=-t1":                   method.Abort("-t1"),
		"status -t t1 --json":                   method.Status("t1", true),
		"status -t t1":                          method.Status("t1", false),
		"describe -d " + url + " --deep --json": method.Describe(url, false),
		"describe -d " + url + " --deep --json --version-timestamps": method.Describe(url, true),
		"pause":  method.Pause(),
		"resume": method.Resume(),
	} {
		assert.Equal(t, want, strings.Join(args, " "))
	}
	command, args := method.AgentCommand()
	assert.Equal(t, []string{"backup_agent"}, command)
	assert.Equal(t, "--log --logdir /var/log/fdb-trace-logs --locality_zoneid=$(FDB_ZONE_ID) --locality_machineid=$(FDB_MACHINE_ID)",
		strings.Join(args, " "))

	byDefault, known := fdb.MethodOf("")
	assert.True(t, known)
	assert.Equal(t, method, byDefault)
	_, known = fdb.MethodOf("partitioned_log")
	assert.False(t, known)
}

func TestKeysReachTheToolAsTheyAre(t *testing.T) {
	method, _ := fdb.MethodOf(fdbv1alpha1.BackupTypeAgent)
	for title, test := range map[string]struct{ keys, want string }{
		"a semicolon does not end the range": {"a;b c", `a\x3bb c`},
		"a quote does not begin a text":      {`a"b c"`, `a\x22b c\x22`},
		"a dash does not make an option":     {"-a -b", `\x2da -b`},
		"escapes stay":                       {`\x22\\ \xff`, `\x22\\ \xff`},
	} {
		t.Run(title, func(t *testing.T) {
			args := method.Start(fdb.Command{URL: "blobstore://lab@h/p?bucket=b", Tag: "t", KeyRanges: []string{test.keys}})
			assert.Equal(t, []string{"-k", test.want}, args[len(args)-2:])
		})
	}
}

func TestNoArgumentHoldsASecret(t *testing.T) {
	method, _ := fdb.MethodOf(fdbv1alpha1.BackupTypeAgent)
	const url = "blobstore://lab:s3cr3t:s3cr3t@h/p?bucket=b&header=X:s3cr3t"
	for _, args := range [][]string{
		method.Start(fdb.Command{URL: url, Tag: "t"}), method.Modify(fdb.Command{URL: url, Tag: "t"}), method.Describe(url, true),
		method.DryStart(fdb.Command{URL: url, Tag: "t"}), method.DryWrite(url, "t"),
	} {
		assert.False(t, slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "s3cr3t") }), args)
	}
}
