package k8s

import "strings"

// MaxEventNoteBytes is what the API server takes as an Event's note.
const MaxEventNoteBytes = 1024

// Shorten cuts text to at most limit bytes, marking the cut, without splitting a character.
func Shorten(text string, limit int) string {
	const mark = "..."
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
