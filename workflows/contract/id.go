package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxIDBytes is how long a workflow ID may be: Temporal's SQL stores hold no longer one (temporal#2122), although its frontend
// takes 1,000 bytes.
const MaxIDBytes = 255

const (
	// scheduleBytes are Temporal's own of the ID of a Schedule: `temporal-sys-scheduler:` before it, or the time that it adds to the
	// ID of a workflow.
	scheduleBytes = 23
	// maxAttributeBytes is what Temporal's SQL stores hold of a search attribute, maxSummaryBytes less than the limit of a summary,
	// which is that of its payload (400).
	maxAttributeBytes = 255
	maxSummaryBytes   = 350
)

// bounded returns a text of at most so many bytes: a longer one ends in a hash of the whole.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const hashed = 16
	sum := sha256.Sum256([]byte(text))
	return strings.ToValidUTF8(text[:most-1-2*hashed], "") + "~" + hex.EncodeToString(sum[:hashed])
}
