package temporalserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Certificates are those of Temporal's server and of its clients, which renew them in their files.
type Certificates struct {
	dir string
	ca  *x509.Certificate
	key *ecdsa.PrivateKey
}

const serverName = "temporal.holdfast.test"

func (t *Certificates) file(name string) string { return filepath.Join(t.dir, name) }

// Environment is that of a client: the variables of Temporal's own tools.
func (t *Certificates) Environment() []string {
	if t == nil {
		return nil
	}
	return []string{
		"TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + t.file("ca.crt"), "TEMPORAL_TLS_SERVER_NAME=" + serverName,
		"TEMPORAL_TLS_CLIENT_CERT_PATH=" + t.file("client.crt"), "TEMPORAL_TLS_CLIENT_KEY_PATH=" + t.file("client.key"),
	}
}

// config is the part of the server's configuration: mutual TLS for its clients and its own worker service. It reads the files
// again every second.
func (t *Certificates) config() map[string]any {
	client := map[string]any{"serverName": serverName, "rootCaFiles": []string{t.file("ca.crt")}}
	return map[string]any{
		"refreshInterval": "1s",
		"frontend": map[string]any{
			"server": map[string]any{
				"certFile": t.file("server.crt"), "keyFile": t.file("server.key"),
				"requireClientAuth": true, "clientCaFiles": []string{t.file("ca.crt")},
			},
			"client": client,
		},
		"systemWorker": map[string]any{
			"certFile": t.file("system.crt"), "keyFile": t.file("system.key"), "client": client,
		},
	}
}

// Client is the TLS configuration of a test's own client, as long as its certificate is valid.
func (t *Certificates) Client() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(t.file("client.crt"), t.file("client.key"))
	if err != nil {
		return nil, fmt.Errorf("read a client certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(t.ca)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: serverName}, nil
}

// NewCertificates makes a CA, and certificates that are valid for so long.
func NewCertificates(dir string, validity time.Duration) (*Certificates, error) {
	t := &Certificates{dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for certificates: %w", err)
	}
	var err error
	t.key, t.ca, err = t.sign("ca", &x509.Certificate{
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().AddDate(1, 0, 0),
	})
	if err != nil {
		return nil, err
	}
	return t, t.Renew(validity)
}

// Renew replaces all certificates but the CA's.
func (t *Certificates) Renew(validity time.Duration) error {
	return errors.Join(t.renewServer(validity), t.renewClients(validity))
}

func (t *Certificates) renewServer(validity time.Duration) error {
	_, _, err := t.sign("server", &x509.Certificate{
		DNSNames: []string{serverName}, IPAddresses: []net.IP{net.ParseIP(loopback)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, NotAfter: time.Now().Add(validity),
	})
	return err
}

func (t *Certificates) renewClients(validity time.Duration) error {
	var problems []error
	for _, name := range []string{"client", "system"} {
		_, _, err := t.sign(name, &x509.Certificate{
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, NotAfter: time.Now().Add(validity),
		})
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// sign writes <name>.crt and <name>.key, each at once.
func (t *Certificates) sign(name string, template *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	template.NotBefore = time.Now().Add(-time.Hour)
	parent, by := t.ca, t.key
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate %s: %w", name, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate %s: %w", name, err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate %s: %w", name, err)
	}
	return key, made, errors.Join(
		replaceFile(t.file(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		replaceFile(t.file(name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}

// replaceFile writes a file so that nobody reads a part of it.
func replaceFile(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
