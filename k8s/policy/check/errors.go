package check

import (
	"fmt"

	"holdfast.dev/holdfast/k8s/shorten"
)

// MaxMessage is short enough for an Event's note (1024 bytes) and for a condition.
const MaxMessage = 1000

// InvalidSpecError is a verdict: the tenant's spec is not allowed. Its text is for the tenant.
type InvalidSpecError struct {
	// Message says what is wrong.
	Message string
	// External: the cause lies outside the spec (a storage location, the administrator's policy), so that the verdict
	// can change while the spec stays.
	External bool
}

// Error returns the message.
func (e *InvalidSpecError) Error() string { return e.Message }

// UnusableError says that there is a policy which cannot be understood, and that none was known before. Until it is
// mended nothing new may be admitted and nothing deleted.
type UnusableError struct {
	// Origin names the object that holds the policy.
	Origin string
	// Err is what is wrong with it.
	Err error
}

// Error names the object and what is wrong with it.
func (e *UnusableError) Error() string {
	return fmt.Sprintf("policy in %s cannot be used: %v", e.Origin, e.Err)
}

// Unwrap returns what is wrong with the policy.
func (e *UnusableError) Unwrap() error { return e.Err }

// Invalid returns a verdict on the spec itself.
func Invalid(format string, args ...any) error {
	return &InvalidSpecError{Message: shorten.Text(fmt.Sprintf(format, args...), MaxMessage)}
}

// External returns a verdict whose cause lies outside the spec, and may pass.
func External(format string, args ...any) error {
	return &InvalidSpecError{Message: shorten.Text(fmt.Sprintf(format, args...), MaxMessage), External: true}
}
