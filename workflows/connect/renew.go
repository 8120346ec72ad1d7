package connect

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
)

// renew has the files of the client's certificate and key, and of the CA, read at each handshake: certificates run out, and
// the files are replaced while the process runs, as those of a mounted Secret are. A connection keeps what it was made with.
func renew(options *client.Options, files *envconfig.ClientConfigTLS) {
	config := options.ConnectionOptions.TLS
	if config == nil || files == nil {
		return
	}
	if files.ClientCertPath != "" {
		config.Certificates = nil
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(files.ClientCertPath, files.ClientKeyPath)
			if err != nil {
				return nil, fmt.Errorf("read the client certificate: %w", err)
			}
			return &pair, nil
		}
	}
	if files.ServerCACertPath != "" && !files.DisableHostVerification {
		name := serverName(options)
		// What crypto/tls would do is done below: it has no way to ask for the CA.
		config.InsecureSkipVerify = true //nolint:gosec // see VerifyConnection
		config.VerifyConnection = func(state tls.ConnectionState) error {
			return verify(state.PeerCertificates, files.ServerCACertPath, cmp.Or(state.ServerName, name)) // none is sent for an IP address
		}
	}
}

// serverName is the name that the server's certificate must have: as configured, or the host that gRPC takes for the authority.
func serverName(options *client.Options) string {
	if configured := options.ConnectionOptions.TLS.ServerName; configured != "" {
		return configured
	}
	authority := cmp.Or(options.ConnectionOptions.Authority, options.HostPort, client.DefaultHostPort)
	if _, endpoint, hasScheme := strings.Cut(authority, ":///"); hasScheme { // of a gRPC name: dns:///host:port
		authority = endpoint
	}
	if host, _, err := net.SplitHostPort(authority); err == nil {
		return host
	}
	return authority
}

// verify checks a server's certificate by the CA in the file.
func verify(chain []*x509.Certificate, caFile, name string) error {
	content, err := os.ReadFile(caFile)
	if err != nil {
		return fmt.Errorf("read the CA of Temporal's certificate: %w", err)
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	if !roots.AppendCertsFromPEM(content) {
		return fmt.Errorf("%s, the CA of Temporal's certificate, holds no certificate", caFile)
	}
	if len(chain) == 0 || name == "" { // without a name none would be checked
		return errors.New("verify Temporal's certificate: it has sent none, or its name is not known (TEMPORAL_TLS_SERVER_NAME)")
	}
	for _, certificate := range chain[1:] {
		between.AddCert(certificate)
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: name}); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: chain, Err: err}
	}
	return nil
}
