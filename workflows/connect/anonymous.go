package connect

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// ErrAnonymousAllowed says that Temporal answers a caller without credentials.
var ErrAnonymousAllowed = errors.New("answers callers without credentials, so anyone who reaches it could decide")

// RefusesAnonymous asks as a caller who has nothing but the address: without client certificate, API key and configured headers.
// It returns nil if Temporal refuses him, an error that is ErrAnonymousAllowed if it answers, and another if neither is known.
// The server's certificate is checked as configured: anybody else's refusal proves nothing.
func (t *Temporal) RefusesAnonymous(ctx context.Context) error {
	handshake := &anonymousTLS{config: t.tls}
	security := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority(t.authority)}
	if t.tls != nil {
		handshake.TransportCredentials = credentials.NewTLS(t.tls)
		security = []grpc.DialOption{grpc.WithTransportCredentials(handshake)}
	}
	connection, err := grpc.NewClient(t.address, security...)
	if err == nil {
		defer func() { _ = connection.Close() }()
		// The header routes the call where one address serves many namespaces; it is no credential.
		ctx = metadata.AppendToOutgoingContext(ctx, "temporal-namespace", t.Namespace)
		_, err = workflowservice.NewWorkflowServiceClient(connection).DescribeNamespace(ctx,
			&workflowservice.DescribeNamespaceRequest{Namespace: t.Namespace})
	}
	if err = anonymousAnswer(err, handshake.rejected.Load()); err != nil {
		return fmt.Errorf("%s %w", t.address, err)
	}
	return nil
}

// anonymousAnswer judges what came of the call. rejected: a handshake ended because of the certificate that was not shown.
func anonymousAnswer(err error, rejected bool) error {
	switch code := status.Code(err); {
	case code == codes.Unauthenticated, code == codes.PermissionDenied, code == codes.Unavailable && rejected:
		return nil
	case code == codes.OK, code == codes.NotFound: // it has looked for the namespace
		return ErrAnonymousAllowed
	}
	return fmt.Errorf("does not show whether it refuses callers without credentials: %w", err)
}

// anonymousTLS is TLS as configured, but without a client certificate, and notes if a server turns it away for that.
type anonymousTLS struct {
	credentials.TransportCredentials
	config   *tls.Config
	rejected atomic.Bool
}

// Clone implements credentials.TransportCredentials.
func (a *anonymousTLS) Clone() credentials.TransportCredentials { return a }

// ClientHandshake implements credentials.TransportCredentials.
func (a *anonymousTLS) ClientHandshake(
	ctx context.Context, authority string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	var asked atomic.Bool // it goes on in the background when ctx ends
	config := a.config.Clone()
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked.Store(true)
		return &tls.Certificate{}, nil
	}
	connection, info, err := credentials.NewTLS(config).ClientHandshake(ctx, authority, raw)
	if err == nil && asked.Load() {
		connection, err = firstWord(connection)
	}
	if asked.Load() && wantsCertificate(err) {
		a.rejected.Store(true)
	}
	return connection, info, err
}

// firstWordPatience is for a server that lets the client speak first: it has accepted, or will say otherwise to the call.
const firstWordPatience = time.Second

// firstWord waits for what a server of TLS 1.3 says of the missing certificate, which comes after the handshake. Had the client
// written before, the answer might be lost with the connection. After an error gRPC closes that.
func firstWord(connection net.Conn) (net.Conn, error) {
	if err := connection.SetReadDeadline(time.Now().Add(firstWordPatience)); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(connection)
	if _, err := reader.Peek(1); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, err
	}
	return &peeked{Conn: connection, reader: reader}, connection.SetReadDeadline(time.Time{})
}

// peeked is a connection of which something was read ahead.
type peeked struct {
	net.Conn
	reader *bufio.Reader
}

// Read implements net.Conn.
func (p *peeked) Read(to []byte) (int, error) { return p.reader.Read(to) }

// certificateAlerts are what servers answer to a client without a certificate: certificate_required since TLS 1.3, and before
// bad_certificate or handshake_failure.
var certificateAlerts = []tls.AlertError{116, 42, 40}

// wantsCertificate: the error is one of these alerts, sent by the peer. crypto/tls has no exported type for those.
func wantsCertificate(err error) bool {
	var remote *net.OpError
	return errors.As(err, &remote) && remote.Op == "remote error" &&
		slices.ContainsFunc(certificateAlerts, func(alert tls.AlertError) bool { return remote.Err.Error() == alert.Error() })
}
