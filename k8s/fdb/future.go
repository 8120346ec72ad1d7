package fdb

import (
	"fmt"
	"regexp"
	"time"
)

// future is how the tools refuse a start: they keep the local time of each start in the database, and compare it with their own
// (apple/foundationdb#4168, #11958). Ours have UTC.
var future = regexp.MustCompile("(?i)last backup [`'\"]([0-9-]{19})(?:[.][0-9]+)?['\"] happened in the future")

// futureLayout is that of the time, without the fraction of its second.
const futureLayout = "2006-01-02-15-04-05"

// explainFuture says what the refusal means, and when it ends.
func explainFuture(said string) string {
	const what = "FoundationDB refuses to start a backup before the time at which the database's last one was started%s. It keeps " +
		"the local time: somebody has started that one by hand in a time zone ahead of UTC, or a clock is wrong. %s"
	found := future.FindStringSubmatch(said)
	if found == nil {
		return fmt.Sprintf(what, "", "The start is retried")
	}
	at, err := time.Parse(futureLayout, found[1])
	if err != nil {
		return fmt.Sprintf(what, ", "+found[1], "The start is retried")
	}
	over := at.Add(time.Second).Format(time.RFC3339) // the fraction counts
	return fmt.Sprintf(what, ", "+at.Format(time.RFC3339)+" as it reads in UTC", "It ends by itself at "+over+": the start is retried then")
}
