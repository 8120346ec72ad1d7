package details

import (
	"strings"
	"time"
)

// OneLine keeps what a tenant wrote from ending the block that it is shown in.
func OneLine(text string) string {
	return strings.NewReplacer("\n", " ", "\r", " ", "`", "'").Replace(text)
}

// OrUnknown is what Velero says, or that it has said nothing yet.
func OrUnknown(text string) string {
	if text == "" {
		return "no word from Velero yet"
	}
	return text
}

// Stamp is a time in Unix seconds as people read it, in UTC.
func Stamp(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }
