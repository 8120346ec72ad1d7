package connect_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/workflows/connect"
)

const theKey = "the-key"

// DescribeNamespace implements workflowservice.WorkflowServiceServer: the namespace is there for callers that show what f wants.
func (f *frontend) DescribeNamespace(
	ctx context.Context, request *workflowservice.DescribeNamespaceRequest,
) (*workflowservice.DescribeNamespaceResponse, error) {
	sent, _ := metadata.FromIncomingContext(ctx)
	f.asked.Store(sent)
	if f.wantsKey != codes.OK && (len(sent.Get("authorization")) == 0 || sent.Get("authorization")[0] != "Bearer "+theKey) {
		return nil, status.Error(f.wantsKey, "Request unauthorized.")
	}
	if request.Namespace != "default" {
		return nil, status.Error(codes.NotFound, "no such namespace")
	}
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

// refusesAnonymous asks with nothing but the environment.
func refusesAnonymous(t *testing.T) error {
	t.Helper()
	temporal, err := connect.Lazy(connect.Options{Logger: zap.NewNop()})
	require.NoError(t, err)
	defer temporal.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return temporal.RefusesAnonymous(ctx)
}

// second has a server wait for the client's first word, as some proxies do.
type second struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (s second) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	connection, info, err := s.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	reader := bufio.NewReader(connection)
	_, err = reader.Peek(1)
	return &listened{Conn: connection, reader: reader}, info, err
}

type listened struct {
	net.Conn
	reader *bufio.Reader
}

// Read implements net.Conn.
func (l *listened) Read(to []byte) (int, error) { return l.reader.Read(to) }

// secured serves with a certificate, and returns the settings of a client that has all credentials.
func (f *frontend) secured(t *testing.T, change func(*tls.Config), last bool) map[string]string {
	t.Helper()
	ca := newAuthority(t)
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	config := &tls.Config{Certificates: []tls.Certificate{ca.server()}, ClientCAs: pool}
	change(config)
	security := credentials.NewTLS(config)
	if last {
		security = second{security}
	}
	f.serve(t, security)
	cert, key := ca.client()
	return map[string]string{
		"TEMPORAL_ADDRESS": f.address, "TEMPORAL_TLS_SERVER_CA_CERT_PATH": ca.file, "TEMPORAL_TLS_SERVER_NAME": "temporal.test",
		"TEMPORAL_TLS_CLIENT_CERT_PATH": cert, "TEMPORAL_TLS_CLIENT_KEY_PATH": key,
		"TEMPORAL_API_KEY": theKey, "TEMPORAL_GRPC_META_AUTHORIZATION": "Bearer " + theKey,
	}
}

// The worker has every credential; what counts is what the server does with a caller who shows none.
func TestAServerIsAskedWithoutCredentials(t *testing.T) {
	required := func(c *tls.Config) { c.ClientAuth = tls.RequireAndVerifyClientCert }
	tests := map[string]struct {
		tls      func(*tls.Config)
		wantsKey codes.Code
		last     bool // the client has the first word
		change   map[string]string
		want     string // what the error says; none: it refuses
	}{
		"a certificate is required": {tls: required},
		"a certificate is required, by TLS 1.2": {tls: func(c *tls.Config) {
			required(c)
			c.MaxVersion = tls.VersionTLS12
		}},
		"a certificate is asked for, and not required": {
			tls:  func(c *tls.Config) { c.ClientAuth = tls.VerifyClientCertIfGiven },
			want: "answers callers without credentials",
		},
		"a certificate is asked for, and a key required": {
			tls: func(c *tls.Config) { c.ClientAuth = tls.VerifyClientCertIfGiven }, wantsKey: codes.Unauthenticated,
		},
		"a certificate is required, by one who speaks last": {tls: required, last: true},
		"a certificate is asked for, and not required, by one who speaks last": {
			tls: func(c *tls.Config) { c.ClientAuth = tls.VerifyClientCertIfGiven }, last: true,
			want: "answers callers without credentials",
		},
		"a key is required":                   {wantsKey: codes.Unauthenticated},
		"a key is required, by an authorizer": {wantsKey: codes.PermissionDenied},
		"nothing is required":                 {want: "answers callers without credentials"},
		"nothing is required, and there is no such namespace": {
			change: map[string]string{"TEMPORAL_NAMESPACE": "other"}, want: "answers callers without credentials",
		},
		"it is too busy to say": {wantsKey: codes.ResourceExhausted, want: "does not show whether"},
		"it is another server, which requires a certificate": {
			tls: required, change: map[string]string{"TEMPORAL_TLS_SERVER_NAME": "other.test"},
			want: "certificate is valid for temporal.test, not other.test",
		},
		"it knows another TLS": {
			tls: func(c *tls.Config) {
				required(c)
				c.MaxVersion = tls.VersionTLS11
			}, want: "does not show whether",
		},
		"it wants TLS": {change: map[string]string{"TEMPORAL_TLS": "false"}, want: "does not show whether"},
		"nobody is there": {
			change: map[string]string{"TEMPORAL_ADDRESS": "127.0.0.1:1"}, want: "127.0.0.1:1 does not show whether",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			if test.tls == nil {
				test.tls = func(*tls.Config) {}
			}
			f := &frontend{wantsKey: test.wantsKey}
			settings(t, f.secured(t, test.tls, test.last))
			for name, value := range test.change {
				t.Setenv(name, value)
			}
			var err error
			eventually.Succeeds(t, time.Minute, func() error {
				// A busy server's first word may come after the patience of a second: then it is not known, and asked again.
				if err = refusesAnonymous(t); test.want == "" && err != nil && !errors.Is(err, connect.ErrAnonymousAllowed) {
					return err
				}
				return nil
			})
			if sent, ok := f.asked.Load().(metadata.MD); ok {
				assert.NotContains(t, sent, "authorization")
				assert.NotEmpty(t, sent.Get("temporal-namespace"))
			}
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
			assert.Equal(t, test.want == "answers callers without credentials", errors.Is(err, connect.ErrAnonymousAllowed))
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

// A server that takes the connection and says nothing proves nothing.
func TestASilentServerProvesNothing(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	settings(t, map[string]string{"TEMPORAL_ADDRESS": listener.Addr().String()})
	temporal, err := connect.Lazy(connect.Options{Logger: zap.NewNop()})
	require.NoError(t, err)
	defer temporal.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		connection, err := listener.Accept()
		if err == nil {
			defer connection.Close()
		}
		cancel()
		<-t.Context().Done()
	}()
	require.ErrorContains(t, temporal.RefusesAnonymous(ctx), "does not show whether")
}
