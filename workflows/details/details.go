package details

import (
	"cmp"
	"strings"
	"time"
)

// OneLine puts a tenant's text on one line, so that it cannot end the block in which it is shown.
func OneLine(text string) string {
	return strings.NewReplacer("\n", " ", "\r", " ", "`", "'").Replace(text)
}

// OrUnknown is Velero's text, or a word for none yet.
func OrUnknown(text string) string { return cmp.Or(text, "not reported by Velero yet") }

// Stamp is a time in Unix seconds as people read it, in UTC.
func Stamp(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }
