package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestWhatAnAnswerToAnAnonymousCallerProves(t *testing.T) {
	const refused, allowed, nothing = "refused", "allowed", "nothing"
	tests := map[codes.Code]string{
		codes.OK: allowed, codes.NotFound: allowed,
		codes.Unauthenticated: refused, codes.PermissionDenied: refused,
		codes.Unavailable: nothing, codes.DeadlineExceeded: nothing, codes.Canceled: nothing, codes.Unknown: nothing,
		codes.Internal: nothing, codes.ResourceExhausted: nothing, codes.Unimplemented: nothing, codes.InvalidArgument: nothing,
		codes.FailedPrecondition: nothing, codes.Aborted: nothing, codes.AlreadyExists: nothing, codes.OutOfRange: nothing,
		codes.DataLoss: nothing,
	}
	proves := func(err error) string {
		switch {
		case err == nil:
			return refused
		case errors.Is(err, ErrAnonymousAllowed):
			return allowed
		}
		return nothing
	}
	for code, want := range tests {
		err := status.Error(code, "words")
		assert.Equal(t, want, proves(anonymousAnswer(err, false)), code)
		if code == codes.Unavailable {
			want = refused
		}
		assert.Equal(t, want, proves(anonymousAnswer(err, true)), "%s, after a handshake that was rejected", code)
	}
	assert.Equal(t, nothing, proves(anonymousAnswer(context.DeadlineExceeded, true)))
}

func TestWhichAlertsMissACertificate(t *testing.T) {
	alert := func(op string, alert tls.AlertError) error {
		return fmt.Errorf("handshake: %w", &net.OpError{Op: op, Err: errors.New(alert.Error())})
	}
	for _, missed := range []tls.AlertError{40, 42, 116} {
		assert.True(t, wantsCertificate(alert("remote error", missed)), missed)
		assert.False(t, wantsCertificate(alert("local error", missed)), "our own: %s", missed)
	}
	for title, other := range map[string]error{
		"none": nil, "the end": io.EOF, "an internal error of the server's": alert("remote error", 80),
		"another version of TLS": alert("remote error", 70), "an unknown authority": alert("remote error", 48),
		"the network": &net.OpError{Op: "read", Err: errors.New("connection reset by peer")},
	} {
		assert.False(t, wantsCertificate(other), title)
	}
}
