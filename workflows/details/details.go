package details

import (
	"strings"
	"time"
)

// OneLine keeps what a tenant wrote from ending the block that it is shown in.
func OneLine(text string) string {
	return strings.NewReplacer("\n", " ", "\r", " ", "`", "'").Replace(text)
}

func OrUnknown(text string) string {
	if text == "" {
		return "no word from Velero yet"
	}
	return text
}

func Stamp(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }
