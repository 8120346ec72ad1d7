package agents

import (
	"fmt"
)

// TemplateError says why spec.podTemplateSpec cannot be used. Its text is for the user.
type TemplateError struct {
	// Message says what is wrong, and where.
	Message string
}

// Error returns the message.
func (e *TemplateError) Error() string { return e.Message }

func refused(format string, args ...any) error {
	return &TemplateError{Message: "spec.podTemplateSpec " + shorten(fmt.Sprintf(format, args...))}
}

// maxMessage lets the text fit into an Event's note.
const maxMessage = 900

func shorten(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return text[:maxMessage] + "..."
}
