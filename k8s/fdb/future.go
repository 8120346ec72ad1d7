package fdb

import (
	"fmt"
	"regexp"
	"time"

	"holdfast.dev/holdfast/workflows/contract"
)

// future is how the tools refuse a start: they keep the local time of each start in the database, and compare it with their own
// (apple/foundationdb#4168, #11958). Ours have UTC.
var future = regexp.MustCompile("(?i)last backup [`'\"]([0-9-]{19})(?:[.][0-9]+)?['\"] happened in the future")

// LastStartQuery has fdbcli print that time. No tool of backups does, before it refuses a start. The key is that of 7.3
// (fdbclient/FileBackupAgent.actor.cpp, lastBackupTimestamp).
const LastStartQuery = `option on ACCESS_SYSTEM_KEYS; option on READ_LOCK_AWARE; ` +
	`get \xff\x02/backup-agent/\x01config\x00\x01lastBackupTimestamp\x00`

// lastStart is the answer: the key, and the time in a tuple.
var lastStart = regexp.MustCompile("lastBackupTimestamp[^\n]*' is `\\\\x01([0-9-]{19})[0-9.]*\\\\x00'")

// futureLayout is that of the time, without the fraction of its second.
const futureLayout = "2006-01-02-15-04-05"

// FutureStart returns the failure of a start now, by the answer to LastStartQuery, if the last start is in the future. It is nil
// if that is not so, or the answer is none that is known.
func FutureStart(answer []byte, now time.Time) *contract.FDBFailure {
	found := lastStart.FindSubmatch(answer)
	if found == nil {
		return nil
	}
	at, err := time.Parse(futureLayout, string(found[1]))
	if err != nil || at.Before(now) {
		return nil
	}
	return trouble(contract.FDBClassFuture, explainFuture(string(found[1])))
}

// refusedFuture returns the explanation of a refusal.
func refusedFuture(said string) string {
	found := future.FindStringSubmatch(said)
	if found == nil {
		return explainFuture("")
	}
	return explainFuture(found[1])
}

// explainFuture says what a refusal because of this time means, and when it ends.
func explainFuture(last string) string {
	const what = "FoundationDB refuses to start a backup before the time at which the database's last one was started%s. It keeps " +
		"the local time: somebody has started that one by hand in a time zone ahead of UTC, or a clock is wrong. %s"
	at, err := time.Parse(futureLayout, last)
	switch {
	case last == "":
		return fmt.Sprintf(what, "", "The start is retried")
	case err != nil:
		return fmt.Sprintf(what, ", "+last, "The start is retried")
	}
	over := at.Add(time.Second).Format(time.RFC3339) // the fraction counts
	return fmt.Sprintf(what, ", "+at.Format(time.RFC3339)+" as it reads in UTC",
		"It ends by itself at "+over+": the start is retried then")
}
