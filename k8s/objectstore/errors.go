package objectstore

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"syscall"

	"gocloud.dev/gcerrors"
)

var (
	// ErrNotFound says that there is no such file.
	ErrNotFound = errors.New("there is no such file")
	// ErrUnusable says that a retry does not help: the location or its credential cannot be used, or the file is not valid.
	ErrUnusable = errors.New("unusable")
)

// Error says what could not be done in the object store, in words that are safe to show. It wraps ErrNotFound or ErrUnusable
// where one applies; otherwise a retry may succeed.
type Error struct {
	// Action is what was attempted, for example "read backups/a/a-volumeinfo.json.gz".
	Action string
	// Reason is why it was not possible.
	Reason string

	kind error
}

// Error implements error.
func (e *Error) Error() string { return e.Action + ": " + e.Reason }

// OfObjectStore marks the error for activities, which give each error its type.
func (*Error) OfObjectStore() {}

// Unwrap returns ErrNotFound, ErrUnusable or nil. The original error is not kept: it may hold secrets.
func (e *Error) Unwrap() error { return e.kind }

// Unusable returns an error which says that a retry of an action does not help.
func Unusable(action, reason string) error { return unusable(action, "%s", reason) }

func unusable(action, reason string, args ...any) error {
	return &Error{Action: action, Reason: fmt.Sprintf(reason, args...), kind: ErrUnusable}
}

// Failed replaces an error of a driver by one with words that may be shown. The code is the object store's, if it answered one.
func Failed(action string, err error, code string) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return &Error{Action: action, Reason: ErrNotFound.Error(), kind: ErrNotFound}
	}
	return &Error{Action: action, Reason: reason(err, code)}
}

func reason(err error, code string) string {
	var dns *net.DNSError
	var untrusted x509.UnknownAuthorityError
	var misnamed x509.HostnameError
	var invalid x509.CertificateInvalidError
	var system syscall.Errno
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "the object store did not answer in time"
	case code != "":
		return "the object store answered " + code
	case gcerrors.Code(err) == gcerrors.PermissionDenied:
		return "the object store denied access"
	case errors.As(err, &untrusted), errors.As(err, &misnamed), errors.As(err, &invalid):
		return "the object store's TLS certificate is not trusted"
	case errors.As(err, &dns):
		return "the object store's name cannot be resolved"
	case errors.As(err, &system):
		return "the object store cannot be reached: " + system.Error()
	}
	return "the object store cannot be reached"
}
