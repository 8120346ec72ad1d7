package connect_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/workflows/connect"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its own certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.key, a.cert = a.sign("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	a.file = filepath.Join(a.dir, "ca.crt")
	return a
}

// sign writes <name>.crt and <name>.key.
func (a *authority) sign(name string, template, parent *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	signer := a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	require.NoError(a.t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	for suffix, block := range map[string]*pem.Block{
		".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		require.NoError(a.t, os.WriteFile(filepath.Join(a.dir, name+suffix), pem.EncodeToMemory(block), 0o600))
	}
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return key, cert
}

func (a *authority) server() tls.Certificate {
	a.t.Helper()
	a.sign("server", &x509.Certificate{
		DNSNames: []string{"temporal.test"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.cert)
	pair, err := tls.LoadX509KeyPair(filepath.Join(a.dir, "server.crt"), filepath.Join(a.dir, "server.key"))
	require.NoError(a.t, err)
	return pair
}

// client returns the files of a client's certificate and key.
func (a *authority) client() (certFile, keyFile string) {
	a.t.Helper()
	a.sign("client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, a.cert)
	return filepath.Join(a.dir, "client.crt"), filepath.Join(a.dir, "client.key")
}

// frontend is as much of a Temporal server as a client asks when it connects.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
	address       string
	authorization atomic.Value // of the last call
	wantsKey      codes.Code   // the answer to a caller without theKey; OK: none is needed
	asked         atomic.Value // metadata.MD of the last DescribeNamespace
	queries       atomic.Int64 // refused for their number
}

// GetSystemInfo implements workflowservice.WorkflowServiceServer.
func (f *frontend) GetSystemInfo(
	context.Context, *workflowservice.GetSystemInfoRequest,
) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{Capabilities: &workflowservice.GetSystemInfoResponse_Capabilities{}}, nil
}

func startFrontend(t *testing.T, config *tls.Config) *frontend {
	t.Helper()
	f := &frontend{}
	f.serve(t, credentials.NewTLS(config))
	return f
}

func (f *frontend) serve(t *testing.T, security credentials.TransportCredentials, options ...grpc.ServerOption) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.address = listener.Addr().String()
	server := grpc.NewServer(append(options, grpc.Creds(security), grpc.UnaryInterceptor(
		func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if sent, _ := metadata.FromIncomingContext(ctx); len(sent.Get("authorization")) > 0 {
				f.authorization.Store(sent.Get("authorization")[0])
			}
			return handle(ctx, request)
		}))...)
	workflowservice.RegisterWorkflowServiceServer(server, f)
	healthy := health.NewServer()
	healthy.SetServingStatus("temporal.api.workflowservice.v1.WorkflowService", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(server, healthy)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
}

// settings are the environment of a process, without that of the machine.
func settings(t *testing.T, variables map[string]string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	for name, value := range variables {
		t.Setenv(name, value)
	}
}

// ask connects with nothing but the environment, and asks as the readiness check does: within two seconds, and again later. That may
// not be enough for a handshake on a busy machine, and a server's reason may be lost with the connection: see answers, refuses.
func ask(t *testing.T) error {
	t.Helper()
	temporal, err := connect.Lazy(connect.Options{Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer temporal.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	return temporal.Ping(ctx)
}

func answers(t *testing.T) {
	t.Helper()
	eventually.Succeeds(t, time.Minute, func() error { return ask(t) })
}

func refuses(t *testing.T, want ...string) {
	t.Helper()
	eventually.Succeeds(t, time.Minute, func() error {
		err := ask(t)
		if err == nil {
			return eventually.Stop(errors.New("it answers"))
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				return fmt.Errorf("no %q in: %w", part, err)
			}
		}
		assert.NotContains(t, err.Error(), "\n")
		return nil
	})
}

func TestAClientCertificateComesFromTheEnvironment(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	f := startFrontend(t, &tls.Config{
		Certificates: []tls.Certificate{ours.server()}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool(ours),
	})
	cert, key := ours.client()
	foreignCert, foreignKey := others.client()
	good := map[string]string{
		"TEMPORAL_ADDRESS":                 f.address,
		"TEMPORAL_TLS_SERVER_CA_CERT_PATH": ours.file,
		"TEMPORAL_TLS_SERVER_NAME":         "temporal.test",
		"TEMPORAL_TLS_CLIENT_CERT_PATH":    cert,
		"TEMPORAL_TLS_CLIENT_KEY_PATH":     key,
	}
	tests := map[string]struct {
		change map[string]string // of good
		want   []string
	}{
		"another CA": {
			map[string]string{"TEMPORAL_TLS_SERVER_CA_CERT_PATH": others.file},
			[]string{f.address + " with TLS and a client certificate: ", "certificate signed by unknown authority"},
		},
		"no certificate": {
			map[string]string{"TEMPORAL_TLS_CLIENT_CERT_PATH": "", "TEMPORAL_TLS_CLIENT_KEY_PATH": ""},
			[]string{f.address + " with TLS, without a client certificate: ", "certificate required"},
		},
		"a certificate of another CA": {
			map[string]string{"TEMPORAL_TLS_CLIENT_CERT_PATH": foreignCert, "TEMPORAL_TLS_CLIENT_KEY_PATH": foreignKey},
			[]string{f.address + " with TLS and a client certificate: ", "unknown certificate authority"},
		},
		"another name": {
			map[string]string{"TEMPORAL_TLS_SERVER_NAME": "other.test"},
			[]string{"certificate is valid for temporal.test, not other.test"},
		},
		"no TLS": {
			map[string]string{"TEMPORAL_TLS": "false"},
			[]string{f.address + " without TLS: "},
		},
		"a key without a certificate": {
			map[string]string{"TEMPORAL_TLS_CLIENT_CERT_PATH": ""},
			[]string{"TEMPORAL_* environment variables", "other must be present too"},
		},
		"a certificate that is not": {
			map[string]string{"TEMPORAL_TLS_CLIENT_CERT_PATH": "/does/not/exist"},
			[]string{"TEMPORAL_* environment variables", "open /does/not/exist"},
		},
		"the key of another": {
			map[string]string{"TEMPORAL_TLS_CLIENT_KEY_PATH": foreignKey},
			[]string{"TEMPORAL_* environment variables", "private key does not match public key"},
		},
		"a CA that is not": {
			map[string]string{"TEMPORAL_TLS_SERVER_CA_CERT_PATH": "/does/not/exist"},
			[]string{"TEMPORAL_* environment variables", "open /does/not/exist"},
		},
	}
	settings(t, good)
	answers(t)
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			for name, value := range test.change {
				t.Setenv(name, value)
			}
			refuses(t, test.want...)
		})
	}
}

func TestAnAPIKeyComesFromTheEnvironment(t *testing.T) {
	ca := newAuthority(t)
	f := startFrontend(t, &tls.Config{Certificates: []tls.Certificate{ca.server()}})
	settings(t, map[string]string{
		"TEMPORAL_ADDRESS": f.address, "TEMPORAL_API_KEY": "the-key",
		"TEMPORAL_TLS_SERVER_CA_CERT_PATH": ca.file, "TEMPORAL_TLS_SERVER_NAME": "temporal.test",
	})
	answers(t)
	assert.Equal(t, "Bearer the-key", f.authorization.Load())

	// With nothing but the key TLS is on, with the CAs of the system.
	t.Setenv("TEMPORAL_TLS_SERVER_CA_CERT_PATH", "")
	refuses(t, "certificate signed by unknown authority")
}

// The same from a profile in Temporal's own file, such as a mounted Secret.
func TestSettingsComeFromAFile(t *testing.T) {
	ca := newAuthority(t)
	f := startFrontend(t, &tls.Config{Certificates: []tls.Certificate{ca.server()}})
	file := filepath.Join(t.TempDir(), "temporal.toml")
	require.NoError(t, os.WriteFile(file, []byte(`
[profile.prod]
address = "`+f.address+`"
namespace = "backups"
api_key = "key-of-the-file"
[profile.prod.tls]
server_ca_cert_path = "`+ca.file+`"
server_name = "temporal.test"
`), 0o600))
	settings(t, map[string]string{"TEMPORAL_CONFIG_FILE": file, "TEMPORAL_PROFILE": "prod"})
	answers(t)
	assert.Equal(t, "Bearer key-of-the-file", f.authorization.Load())
	temporal, err := connect.Lazy(connect.Options{Logger: zap.NewNop()})
	require.NoError(t, err)
	defer temporal.Close()
	assert.Equal(t, "backups", temporal.Namespace)
}
