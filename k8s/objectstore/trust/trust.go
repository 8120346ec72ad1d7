package trust

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strconv"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// UnusableError says why a location cannot be used as it is. Other errors are the API server's.
type UnusableError struct{ Reason string }

func (e *UnusableError) Error() string { return e.Reason }

func unusable(reason string, args ...any) error { return &UnusableError{fmt.Sprintf(reason, args...)} }

// Of returns whom to trust at a location's address: whom Velero trusts there. The certificates are in the location, or in a
// Secret of its namespace that it names; only an administrator's may.
func Of(ctx context.Context, reader client.Reader, location *velerov1.BackupStorageLocation) (*tls.Config, error) {
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	var certificates []byte
	if storage := location.Spec.ObjectStorage; storage != nil {
		certificates = storage.CACert
		if ref := storage.CACertRef; ref != nil && len(certificates) == 0 {
			var err error
			if certificates, err = Secret(ctx, reader, location.Namespace, ref); err != nil {
				return nil, err
			}
		}
	}
	if len(certificates) > 0 {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(certificates) {
			return nil, unusable("what it names as CA certificate holds none")
		}
		trust.RootCAs = roots
	}
	if skip := location.Spec.Config["insecureSkipTLSVerify"]; skip != "" {
		var err error
		if trust.InsecureSkipVerify, err = strconv.ParseBool(skip); err != nil {
			return nil, unusable("config.insecureSkipTLSVerify must be true or false")
		}
	}
	return trust, nil
}

// Secret reads what a location keeps in a Secret of its namespace.
func Secret(ctx context.Context, reader client.Reader, namespace string, ref *corev1.SecretKeySelector) ([]byte, error) {
	secret := &corev1.Secret{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, unusable("there is no Secret %s/%s", namespace, ref.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("get Secret %s/%s: %w", namespace, ref.Name, err)
	}
	content := secret.Data[ref.Key]
	if len(content) == 0 {
		return nil, unusable("Secret %s/%s holds nothing under key %q", namespace, ref.Name, ref.Key)
	}
	return content, nil
}
