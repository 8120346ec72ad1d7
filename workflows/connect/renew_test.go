package connect_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/workflows/connect"
)

// One client outlasts its certificate, and then the server's CA: no process has to be restarted.
func TestCertificatesAreRenewedInTheFiles(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	var serving atomic.Pointer[tls.Certificate]
	serve := func(by *authority) {
		certificate := by.server()
		serving.Store(&certificate)
	}
	serve(ours)
	f := &frontend{}
	f.serve(t, credentials.NewTLS(&tls.Config{
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool(ours),
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return serving.Load(), nil },
	}), grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 20 * time.Millisecond}))
	cert, key := ours.client()
	settings(t, map[string]string{
		"TEMPORAL_ADDRESS": f.address, "TEMPORAL_TLS_SERVER_NAME": "temporal.test",
		"TEMPORAL_TLS_SERVER_CA_CERT_PATH": ours.file,
		"TEMPORAL_TLS_CLIENT_CERT_PATH":    cert, "TEMPORAL_TLS_CLIENT_KEY_PATH": key,
	})
	temporal, err := connect.Lazy(connect.Options{Logger: zap.NewNop()})
	require.NoError(t, err)
	defer temporal.Close()
	ping := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return temporal.Ping(ctx)
	}
	awaitAnswer := func() {
		t.Helper()
		eventually.Succeeds(t, time.Minute, ping)
	}
	awaitRefusal := func(want string) {
		t.Helper()
		eventually.Succeeds(t, time.Minute, func() error {
			err := ping()
			if err == nil {
				return errors.New("it answers")
			}
			if !strings.Contains(err.Error(), want) {
				return fmt.Errorf("no %q in: %w", want, err)
			}
			return nil
		})
	}
	awaitAnswer()

	ours.sign("client", &x509.Certificate{
		NotAfter: time.Now().Add(-time.Minute), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ours.cert)
	awaitRefusal("") // the server's reason may be lost with the connection
	ours.client()
	awaitAnswer()

	serve(others)
	awaitRefusal("certificate signed by unknown authority")
	content, err := os.ReadFile(others.file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(ours.file, content, 0o600))
	awaitAnswer()

	require.NoError(t, os.WriteFile(ours.file, nil, 0o600))
	awaitRefusal("holds no certificate")
}

// Without a configured name the server's certificate must have that of its address.
func TestTheServersNameIsThatOfItsAddress(t *testing.T) {
	ours := newAuthority(t)
	f := startFrontend(t, &tls.Config{Certificates: []tls.Certificate{ours.server()}})
	_, port, err := net.SplitHostPort(f.address)
	require.NoError(t, err)
	for address, want := range map[string]string{
		f.address:                     "cannot validate certificate for 127.0.0.1",
		"dns:///localhost:" + port:    "certificate is valid for temporal.test, not localhost",
		"passthrough:///" + f.address: "cannot validate certificate for 127.0.0.1",
	} {
		settings(t, map[string]string{"TEMPORAL_ADDRESS": address, "TEMPORAL_TLS_SERVER_CA_CERT_PATH": ours.file})
		refuses(t, want)
	}
}

func pool(of *authority) *x509.CertPool {
	certificates := x509.NewCertPool()
	certificates.AddCert(of.cert)
	return certificates
}
