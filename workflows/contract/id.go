package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxIDBytes is how long a workflow ID may be. Temporal's SQL stores hold 255 bytes (temporal#2122), although its frontend takes
// 1,000. Of these 23 are Temporal's own: `temporal-sys-scheduler:` before the ID of a Schedule, or the time that a Schedule adds
// to the ID of a workflow.
const MaxIDBytes = 255 - 23

// Of other texts Temporal holds at most so many bytes: its SQL stores of a search attribute, its frontend of a summary.
const (
	maxAttributeBytes = 255
	maxSummaryBytes   = 400
)

func boundedID(id string) string { return bounded(id, MaxIDBytes) }

// bounded returns a text of at most so many bytes: a longer one ends in a hash of the whole.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const hashed = 16
	sum := sha256.Sum256([]byte(text))
	return strings.ToValidUTF8(text[:most-1-2*hashed], "") + "~" + hex.EncodeToString(sum[:hashed])
}
