package fdb

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"holdfast.dev/holdfast/workflows/contract"
)

// maxFailure bounds a message, which goes into payloads, conditions and Events.
const maxFailure = 512

// symptom is a kind of failure, recognized by what a tool prints.
type symptom struct {
	// says matches the tool's text, in lower case and without URLs, which hold names that users choose.
	says  *regexp.Regexp
	class contract.FDBClass
	// words say what is wrong and what to do. A %s in them is replaced by the tool's message.
	words string
}

// symptoms are checked in this order: the precise before the vague. The tools have no codes; the texts are those of fdbbackup,
// fdbrestore and FoundationDB's list of errors, 7.1 to 7.4.
var symptoms = []symptom{
	{
		regexp.MustCompile(`region is required|failed to get region`), contract.FDBClassBadURL,
		"the object store's region is not known: add region=... to spec.urlParameters (any name will do for a store without regions)",
	},
	{
		regexp.MustCompile(`backup container url invalid|unknown url parameter|no backup destination was specified`),
		contract.FDBClassBadURL,
		"FoundationDB does not accept the backup's URL (%s): correct spec.destination or spec.urlParameters",
	},
	{
		regexp.MustCompile(`already running on tag|backup duplicate request`), contract.FDBClassAlreadyRunning,
		"a backup is running on the tag already",
	},
	{
		regexp.MustCompile(`restore duplicate request`), contract.FDBClassAlreadyRunning,
		"a restore is running on the tag already",
	},
	{
		regexp.MustCompile(`into a non-empty destination database`), contract.FDBClassNotEmpty,
		"the destination holds data where it is to be restored to: clear these ranges, or restore into another database",
	},
	{
		regexp.MustCompile(`invalid restore version|insufficient data to restore to version|restore version -?[0-9]+ is not possible|` +
			`not restorable to any version`), contract.FDBClassNotRestorable,
		"the backup cannot be restored to this version (%s): choose one from its oldest to its latest restorable point; of what is " +
			"newer than its log, only whole snapshots can be restored",
	},
	{
		regexp.MustCompile(`not running on tag|backup unneeded request|no backup exists on tag|is not runnable|` +
			`cannot modify aborted backup|is already discontinued|uid verification failed`), contract.FDBClassNotRunning,
		"no backup is running on the tag",
	},
	{
		regexp.MustCompile(`backup does not exist`), contract.FDBClassMissing,
		"there is no backup at this URL: it was never written, or somebody has deleted it",
	},
	{
		regexp.MustCompile(`expiration would be unsafe|without violating minimum restorability`), contract.FDBClassUnsafe,
		"FoundationDB refuses to expire these data, because too little would remain restorable: wait for another snapshot, or " +
			"correct spec.expiry",
	},
	{
		regexp.MustCompile(`happened in the future`), contract.FDBClassFuture, "", // refusedFuture has the words
	},
	{
		regexp.MustCompile(`database is locked`), contract.FDBClassLocked,
		"the database is locked, as it is during a restore: wait for its end, or unlock the database",
	},
	{
		regexp.MustCompile(`(read|invalid) cluster file|cluster file [^\n]*does not exist|connection string invalid`),
		contract.FDBClassClusterFile,
		"the cluster file cannot be used (%s): see status.connectionString of the FoundationDBCluster",
	},
	{
		regexp.MustCompile(`due to bad credentials|access ?denied|signaturedoesnotmatch|invalidaccesskeyid|\bforbidden\b|` +
			`unauthori[sz]ed|http[^\n]*\b40[13]\b`), contract.FDBClassDenied,
		"the object store denies access (%s): correct the account's secret in the credentials file, or its rights on the bucket",
	},
	{
		regexp.MustCompile(`cannot find authentication details`), contract.FDBClassDenied,
		"the credentials file has no secret for the account: its key there must be NAME@HOST as in the URL, without a port",
	},
	{
		regexp.MustCompile(`sources of authentication information`), contract.FDBClassDenied,
		`the credentials file cannot be read: it must be JSON of the form {"accounts":{"NAME@HOST":{"secret":"..."}}}`,
	},
	{
		// The tools print this for 403 and every other refusal; they retry overload and lost connections until a timeout.
		regexp.MustCompile(`http response code not received or indicated failure`), contract.FDBClassDenied,
		"the object store refuses the request: probably the account's secret in the credentials file is wrong, the account has no " +
			"rights on the bucket, the bucket does not exist, or region is wrong in spec.urlParameters",
	},
	{
		regexp.MustCompile(`dns lookup failed`), contract.FDBClassStore,
		"the object store's name cannot be resolved: correct the host in spec.destination",
	},
	{
		regexp.MustCompile(`could not create backup container[^\n]*operation timed out|network connection failed`),
		contract.FDBClassStore,
		"the object store cannot be reached (%s): see that it runs, that host and port in spec.destination are right, and whether " +
			"it speaks TLS (secure_connection=0 in spec.urlParameters if not)",
	},
	{
		regexp.MustCompile(`(missing|corrupted) backup data`), contract.FDBClassStore,
		"the backup in the object store is damaged (%s): files are missing or changed",
	},
	{
		regexp.MustCompile(`could not create backup container|disk i/o operation failed|platform error|file could not be|` +
			`file not found|http (response|request)|nosuchbucket|disk io operation`), contract.FDBClassStore,
		"the object store cannot be used (%s): see the store itself",
	},
	{
		regexp.MustCompile(`operation timed out|transaction timed out|specified timeout reached`), contract.FDBClassTimeout,
		"the database or the object store did not answer in time (%s)",
	},
}

// Classify says what the exit of a tool means; nil is success. For a tool that was killed see TimeoutFailure. operation is the
// sub-command of fdbbackup. The message is at most 512 bytes long, and quotes the tool without the secrets and without parts of a
// URL that could be one. The symptoms are read before the redaction: a short secret may be part of any word.
func Classify(operation string, exit int, stdout, stderr []byte, secrets ...string) *contract.FDBFailure {
	if exit == 0 {
		return nil
	}
	said := printed(stderr, nil)
	line := errorLine(printed(stderr, secrets))
	if said == "" {
		said = errorLine(printed(stdout, nil)) // without a symptom it is the tool's usual output
		line = errorLine(printed(stdout, secrets))
	}
	known := strings.ToLower(anyURL.ReplaceAllString(said, ""))
	for _, symptom := range symptoms {
		if !symptom.says.MatchString(known) {
			continue
		}
		words := symptom.words
		if symptom.class == contract.FDBClassFuture {
			words = refusedFuture(said)
		}
		if strings.Contains(words, "%s") {
			words = fmt.Sprintf(words, Bound(line, maxFailure/3))
		}
		return trouble(symptom.class, words)
	}
	if line == "" {
		return trouble(contract.FDBClassOther, fmt.Sprintf("%s ended with exit code %d and printed nothing", named(operation), exit))
	}
	return trouble(contract.FDBClassOther, fmt.Sprintf("%s ended with exit code %d: %s", named(operation), exit, line))
}

// TimeoutFailure is the failure of a command that was ended at its limit.
func TimeoutFailure(operation string, limit time.Duration) *contract.FDBFailure {
	return trouble(contract.FDBClassTimeout, fmt.Sprintf("%s gave no answer within %s: the FoundationDB cluster or the object "+
		"store cannot be reached, or is too slow; it is retried", named(operation), limit.Round(time.Second)))
}

func trouble(class contract.FDBClass, message string) *contract.FDBFailure {
	return &contract.FDBFailure{Class: class, Message: Bound(message, maxFailure)}
}

// maxPrinted is how much of an output is read, from its end, where errors are.
const maxPrinted = 64 * 1024

// printed returns the end of an output. It redacts first, because it could not recognize a URL that was cut.
func printed(output []byte, secrets []string) string {
	text := Redact(string(output), secrets)
	return strings.TrimSpace(strings.ToValidUTF8(text[max(0, len(text)-maxPrinted):], ""))
}

// mentioned is the URL or the cluster file of an error, as the tools print it. The reader of a condition knows the URL; the file
// was made for the command and is gone.
var mentioned = regexp.MustCompile("(?: on URL| at) '[^']*'|( cluster file) [`'][^']*'")

// errorLine returns the first line that is marked as an error, else the first line.
func errorLine(said string) string {
	first := ""
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		text, isError := strings.CutPrefix(line, "ERROR: ")
		if isError {
			first = text
			break
		}
		if first == "" {
			first = strings.TrimPrefix(line, "Fatal Error: ")
		}
	}
	return mentioned.ReplaceAllString(first, "$1")
}

// named names a command for messages; operation is a sub-command of fdbbackup, or a tool and its sub-command.
func named(operation string) string {
	if strings.Contains(operation, " ") {
		return operation
	}
	return "fdbbackup " + operation
}
