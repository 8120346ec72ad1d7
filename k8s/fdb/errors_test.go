package fdb_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// failures maps each class to the transcripts of real tools that must have it.
var failures = map[contract.FDBClass][]string{
	contract.FDBClassAlreadyRunning: {"13-start-again-same-tag", "61-start-same-tag", "99-noagent-start-again", "c4-start-again"},
	contract.FDBClassNotEmpty: {
		"51-restore-start-while-running", "51-restore-start-while-running-othertag", "52-restore-nonempty", "52-restore-nonempty-w",
		"86-big-restart-nonempty",
	},
	contract.FDBClassNotRestorable: {
		"55-restore-ts-before-cluster", "55-restore-ts-future", "55-restore-version-too-new", "55-restore-version-too-old",
		"b2-restore-version-in-gap",
	},
	contract.FDBClassTimeout: {"95-unreachable-fdbcli-get-timeout5", "95-unreachable-fdbcli-timeout5"},
	contract.FDBClassNotRunning: {
		"35-modify-unknown-tag", "36-modify-completed-tag", "46-discontinue-completed", "46-discontinue-unknown", "90-abort-again",
		"90-abort-unknown", "96-abort-empty-tag", "33-modify-verify-uid-wrong",
	},
	contract.FDBClassMissing: {
		"41-describe-nonexistent", "55-restore-container-missing", "77-expire-missing-container", "80-delete-again",
		"80-delete-nonexistent", "c4-describe-nonexistent",
	},
	contract.FDBClassBadURL: {
		"50-restore-no-url", "80-delete-no-dest", "94-start-bad-url-garbage", "94-start-bad-url-scheme", "94-start-blob-nobucket",
		"94-start-blob-unreachable", "94-start-no-dest", "94-start-relative-file", "c4-start-bad-url",
	},
	contract.FDBClassDenied: {"s3-modify-no-bucket-us-east-1", "s3-start-no-bucket-us-east-1"},
	contract.FDBClassStore:  {"a4-delete-readonly", "a4-expire-readonly", "b1-restore-missing-range-file"},
	contract.FDBClassUnsafe: {
		"71-expire-forced", "71-expire-refused", "74-expire-min-restorable-days", "74-expire-min-restorable-days-0",
		"75-expire-all-no-restorable-option", "77-expire-version-negative", "81-expire-refused-no-snapshot-between",
		"82-expire-min-restorable-days-noncontradictory", "83-stale-expire-false-refusal", "c4-expire-refused",
	},
	contract.FDBClassFuture: {"d1-start-last-in-the-future"},
	contract.FDBClassLocked: {"51-locked-during-restore", "61-get-while-queued", "85-big-get", "b4-locked"},
	contract.FDBClassClusterFile: {
		"41-describe-vt-missing-clusterfile", "55-restore-ts-orig-missing", "95-garbage-cluster-file", "95-missing-cluster-file",
		"95-restore-missing-dest-cluster",
	},
	contract.FDBClassOther: {
		"34-modify-nothing", "42-query-keys", "42-query-snapshot-1", "50-restore-no-dest-cluster",
		"55-restore-ts-bad-format", "55-restore-ts-without-orig", "55-restore-ts-without-zone", "55-restore-version-and-ts",
		"70-expire-no-args", "77-expire-bad-ts", "94-start-negative-interval", "94-start-overlap-keys",
		"help-fdbbackup-badcmd", "help-fdbbackup-badopt", "help-fdbbackup-noargs", "help-fdbbackup-tags", "help-fdbrestore-noargs",
	},
}

func TestEveryEndOfARealToolIsUnderstood(t *testing.T) {
	var judged []string
	for class, names := range failures {
		for _, name := range names {
			said := readTranscript(t, name)
			require.NotZero(t, said.exit, name)
			trouble := fdb.Classify("start", said.exit, []byte(said.stdout), []byte(said.stderr))
			require.NotNil(t, trouble, name)
			assert.Equal(t, class, trouble.Class, "%s: %s", name, trouble.Message)
			requireForPeople(t, trouble)
			judged = append(judged, name)
		}
	}
	for _, tool := range []string{"fdbbackup", "fdbrestore", "fdbcli"} {
		for _, name := range transcriptsOf(t, tool) {
			said := readTranscript(t, name)
			switch {
			case said.hung:
			case said.exit == 0:
				assert.Nil(t, fdb.Classify("start", 0, []byte(said.stdout), []byte(said.stderr)), name)
			default:
				assert.Contains(t, judged, name, "nothing here says what it means")
			}
		}
	}
}

func TestFailuresHaveMessagesForPeople(t *testing.T) {
	url := "'blobstore://lab@127.0.0.1:7070/p?bucket=b&region=x'"
	for title, test := range map[string]struct {
		operation, stdout, stderr string
		exit                      int
		class                     contract.FDBClass
		message                   string
	}{
		"a wrong secret, as FoundationDB reports 401": {
			stderr: "ERROR: Could not create backup container: HTTP request failed due to bad credentials\nFatal Error: Backup error",
			class:  contract.FDBClassDenied,
			message: "the object store denies access (Could not create backup container: HTTP request failed due to bad credentials): " +
				"correct the account's secret in the credentials file, or its rights on the bucket",
		},
		"a wrong secret, as FoundationDB reports 403": {
			stderr: "ERROR: Could not create backup container at " + url + ": HTTP response code not received or indicated failure\n" +
				"Fatal Error: Backup error",
			class:   contract.FDBClassDenied,
			message: "the object store refuses the request: probably the account's secret in the credentials file is wrong, the account has no rights on the bucket, the bucket does not exist, or region is wrong in spec.urlParameters",
		},
		"a store that names its refusal": {
			stderr:  "ERROR: SignatureDoesNotMatch",
			class:   contract.FDBClassDenied,
			message: "the object store denies access (SignatureDoesNotMatch): correct the account's secret in the credentials file, or its rights on the bucket",
		},
		"an account without a secret": {
			stderr: "ERROR: Cannot find authentication details (such as a password or secret key) for the specified Backup Container URL",
			class:  contract.FDBClassDenied,
			message: "the credentials file has no secret for the account: its key there must be NAME@HOST as in the URL, " +
				"without a port",
		},
		"a credentials file that is none": {
			stderr:  "ERROR: Cannot read or parse one or more sources of authentication information for Backup Container URLs",
			class:   contract.FDBClassDenied,
			message: `the credentials file cannot be read: it must be JSON of the form {"accounts":{"NAME@HOST":{"secret":"..."}}}`,
		},
		"a store whose name is unknown": {
			stderr:  "ERROR: Could not create backup container at " + url + ": DNS lookup failed\nFatal Error: Backup error",
			class:   contract.FDBClassStore,
			message: "the object store's name cannot be resolved: correct the host in spec.destination",
		},
		"a store that is not there": {
			stderr: "ERROR: Could not create backup container at " + url + ": Operation timed out\nFatal Error: Backup error",
			class:  contract.FDBClassStore,
			message: "the object store cannot be reached (Could not create backup container: Operation timed out): see that it runs, that " +
				"host and port in spec.destination are right, and whether it speaks TLS (secure_connection=0 in spec.urlParameters if not)",
		},
		"a store that fails": {
			stderr:  "ERROR: Disk i/o operation failed\nFatal Error: Disk i/o operation failed",
			class:   contract.FDBClassStore,
			message: "the object store cannot be used (Disk i/o operation failed): see the store itself",
		},
		"a URL without a region": {
			stderr: "ERROR: 'Backup Container URL invalid' on URL " + url + ": Failed to get region from host or parameter in url, " +
				"region is required for aws v4 signature\nTry `fdbbackup --help' for more information.",
			exit: 10, class: contract.FDBClassBadURL,
			message: "the object store's region is not known: add region=... to spec.urlParameters (any name will do for a store without regions)",
		},
		"a URL with a parameter that this version does not know": {
			stderr: "ERROR: 'Backup Container URL invalid' on URL " + url + ": Unknown URL parameter: 'eoic'",
			exit:   10, class: contract.FDBClassBadURL,
			message: "FoundationDB does not accept the backup's URL ('Backup Container URL invalid': Unknown URL parameter: 'eoic'): correct " +
				"spec.destination or spec.urlParameters",
		},
		"a connection string that is none": {
			stderr: "Invalid cluster file `/tmp/hf-1/fdb.cluster': 2104 Connection string invalid",
			class:  contract.FDBClassClusterFile,
			message: "the cluster file cannot be used (Invalid cluster file: 2104 Connection string invalid): see " +
				"status.connectionString of the FoundationDBCluster",
		},
		"a container that is named like a refusal": {
			stderr: "ERROR: Backup does not exist on URL 'blobstore://lab@h/AccessDenied-403?bucket=b'",
			class:  contract.FDBClassMissing, message: "there is no backup at this URL: it was never written, or somebody has deleted it",
		},
		"a database that is slow": {
			stderr: "Fatal Error: Operation timed out", class: contract.FDBClassTimeout,
			message: "the database or the object store did not answer in time (Operation timed out)",
		},
		"a last start in the future": {
			stderr: "ERROR: The last backup `2026-11-28-23-12-13.040506' happened in the future.\n" +
				"ERROR: An error was encountered during submission\nFatal Error: Backup error",
			class: contract.FDBClassFuture,
			message: "FoundationDB refuses to start a backup before the time at which the database's last one was started, " +
				"2026-11-28T23:12:13Z as it reads in UTC. It keeps the local time: somebody has started that one by hand in a time zone " +
				"ahead of UTC, or a clock is wrong. It ends by itself at 2026-11-28T23:12:14Z: the start is retried then",
		},
		"a last start at no time": {
			stderr: "ERROR: The last backup `2026-99-28-23-12-13' happened in the future.", class: contract.FDBClassFuture,
			message: "FoundationDB refuses to start a backup before the time at which the database's last one was started, " +
				"2026-99-28-23-12-13. It keeps the local time: somebody has started that one by hand in a time zone ahead of UTC, or a " +
				"clock is wrong. The start is retried",
		},
		"something else": {
			stderr: "a warning\nERROR: The sky is falling\nFatal Error: Backup error", class: contract.FDBClassOther,
			message: "fdbbackup start ended with exit code 1: The sky is falling",
		},
		"something else, said on the other channel": {
			stdout: "ERROR: The sky is falling", class: contract.FDBClassOther, exit: 11,
			message: "fdbbackup start ended with exit code 11: The sky is falling",
		},
		"nothing at all": {
			operation: "fdbrestore status", exit: 20, class: contract.FDBClassOther,
			message: "fdbrestore status ended with exit code 20 and printed nothing",
		},
	} {
		t.Run(title, func(t *testing.T) {
			operation, exit := "start", 1
			if test.operation != "" {
				operation = test.operation
			}
			if test.exit != 0 {
				exit = test.exit
			}
			trouble := fdb.Classify(operation, exit, []byte(test.stdout), []byte(test.stderr))
			require.NotNil(t, trouble)
			assert.Equal(t, contract.FDBFailure{Class: test.class, Message: test.message}, *trouble)
			requireForPeople(t, trouble)
		})
	}
}

// The answer is that of fdbcli 7.3.48.
func TestALastStartInTheFutureIsFoundBeforeAStart(t *testing.T) {
	answer := func(value string) []byte {
		return []byte(">>> option on ACCESS_SYSTEM_KEYS\nOption enabled for all transactions\n>>> get \\xff\\x02/x\\x01lastBackupTimestamp\\x00\n" +
			"`\\xff\\x02/backup-agent/\\x01config\\x00\\x01lastBackupTimestamp\\x00' is `" + value + "'\n")
	}
	now := time.Date(2026, time.November, 28, 12, 37, 23, 0, time.UTC)
	trouble := fdb.FutureStart(answer(`\x012026-11-28-21-37-13.603440\x00`), now)
	require.NotNil(t, trouble)
	assert.Equal(t, contract.FDBClassFuture, trouble.Class)
	assert.Contains(t, trouble.Message, ", 2026-11-28T21:37:13Z as it reads in UTC. ")
	for title, nothing := range map[string][]byte{
		"in the past":           answer(`\x012026-11-28-12-37-13.603440\x00`),
		"another form":          answer(`2026-11-28-21-37-13.603440`),
		"no time":               answer(`\x012026-99-28-21-37-13\x00`),
		"none":                  []byte("`\\xff\\x02/backup-agent/\\x01config\\x00\\x01lastBackupTimestamp\\x00': not found\n"),
		"a warning and no more": []byte("WARNING: long delay\n"),
	} {
		assert.Nil(t, fdb.FutureStart(nothing, now), title)
	}
}

func TestATimeoutSaysWhatToSuspect(t *testing.T) {
	trouble := fdb.TimeoutFailure("status", 30*time.Second)
	assert.Equal(t, contract.FDBClassTimeout, trouble.Class)
	assert.Equal(t, "fdbbackup status gave no answer within 30s: the FoundationDB cluster or the object store cannot be reached, "+
		"or is too slow; it is retried", trouble.Message)
}

func TestACutURLStillHoldsNoSecret(t *testing.T) {
	long := strings.Repeat("x", 150)
	for title, stderr := range map[string]string{
		"cut at the end of the message":    "ERROR: Platform error " + long + " blobstore://lab:s3cr3ts3cr3t@h/p",
		"cut at the end, not understood":   "ERROR: " + long + long + long + " blobstore://lab:s3cr3t" + long + "@h/p",
		"cut at the start of what is read": "blobstore://lab:" + strings.Repeat("s3cr3t", 20_000) + "@h/p\nERROR: no",
	} {
		t.Run(title, func(t *testing.T) {
			assert.NotContains(t, fdb.Classify("start", 1, nil, []byte(stderr)).Message, "s3cr3t")
		})
	}
}

func FuzzClassify(f *testing.F) {
	for _, names := range failures {
		slices.Sort(names)
		f.Add(names[0], 1)
	}
	f.Add("ERROR: no blobstore://lab:s3cr3t@h/p?header=Authorization:x at 'blobstore://a:b:c@h/p'\x00\xff", 10)
	f.Add(strings.Repeat("é", 100_000), 1)
	f.Fuzz(func(t *testing.T, stderr string, exit int) {
		trouble := fdb.Classify("start", exit, nil, []byte(stderr))
		require.Equal(t, exit == 0, trouble == nil)
		if trouble != nil {
			require.NotEmpty(t, trouble.Class)
			requireForPeople(t, trouble)
			require.NotContains(t, trouble.Message, "://lab:s3cr3t")
		}
	})
}

func requireForPeople(t *testing.T, trouble *contract.FDBFailure) {
	t.Helper()
	require.NotEmpty(t, trouble.Message)
	require.LessOrEqual(t, len(trouble.Message), 512)
	require.True(t, utf8.ValidString(trouble.Message))
	require.NotContains(t, trouble.Message, "\n")
	require.NotContains(t, trouble.Message, "%!")
	require.NotContains(t, trouble.Message, "k:s@")
}
