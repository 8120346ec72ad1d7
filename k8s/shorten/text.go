package shorten

import (
	"strings"
)

// MaxEventNoteBytes is the API server's limit for an Event's note.
const MaxEventNoteBytes = 1024

// Text cuts text to at most limit bytes, marking the cut, without splitting a character.
func Text(text string, limit int) string {
	const mark = "..."
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
