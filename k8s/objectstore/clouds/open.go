package clouds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"gocloud.dev/blob"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/objectstore"
)

// The Secret that Velero uses for locations that name none.
const (
	defaultSecret = "cloud-credentials"
	defaultKey    = "cloud"
)

// answerTimeout limits how long a server may take to begin its answer.
const answerTimeout = 15 * time.Second

// Opener opens the buckets of Velero BackupStorageLocations.
type Opener struct {
	// Reader reads the Secrets that locations refer to.
	Reader client.Reader
}

// access is what is needed to open a location's bucket.
type access struct {
	action     string // for errors
	bucket     string
	prefix     string
	config     map[string]string
	credential []byte
	transport  http.RoundTripper
}

// store returns the location's part of its bucket.
func (a *access) store(bucket *blob.Bucket) *objectstore.Store {
	store := objectstore.NewStore(bucket, a.prefix)
	store.CodeOf = codeOf
	return store
}

// Open opens a location's bucket. The caller closes the store. An error that is not an *objectstore.Error is the API server's.
func (o *Opener) Open(ctx context.Context, location *velerov1.BackupStorageLocation) (*objectstore.Store, error) {
	action := "open BackupStorageLocation " + location.Name
	if location.Spec.ObjectStorage == nil || location.Spec.ObjectStorage.Bucket == "" {
		return nil, unusable(action, "it names no bucket")
	}
	open, known := map[string]func(context.Context, *access) (*objectstore.Store, error){
		"aws": openS3, "gcp": openGCS, "azure": openAzure,
	}[strings.TrimPrefix(location.Spec.Provider, "velero.io/")]
	if !known {
		return nil, unusable(action, "provider %q is not known: aws, gcp and azure are", location.Spec.Provider)
	}
	credential, err := o.secret(ctx, action, location.Namespace, credentialOf(location))
	if err != nil {
		return nil, err
	}
	transport, err := o.transport(ctx, action, location)
	if err != nil {
		return nil, err
	}
	store, err := open(ctx, &access{
		action: action, bucket: location.Spec.ObjectStorage.Bucket, prefix: location.Spec.ObjectStorage.Prefix,
		config: location.Spec.Config, credential: credential, transport: objectstore.BoundBodies(transport),
	})
	if err != nil {
		return nil, err
	}
	store.OnClose(transport.CloseIdleConnections)
	return store, nil
}

func credentialOf(location *velerov1.BackupStorageLocation) *corev1.SecretKeySelector {
	if location.Spec.Credential != nil {
		return location.Spec.Credential
	}
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: defaultSecret}, Key: defaultKey}
}

func (o *Opener) secret(ctx context.Context, action, namespace string, ref *corev1.SecretKeySelector) ([]byte, error) {
	secret := &corev1.Secret{}
	err := o.Reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, unusable(action, "there is no Secret %s/%s", namespace, ref.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("get Secret %s/%s: %w", namespace, ref.Name, err)
	}
	content := secret.Data[ref.Key]
	if len(content) == 0 {
		return nil, unusable(action, "Secret %s/%s holds nothing under key %q", namespace, ref.Name, ref.Key)
	}
	return content, nil
}

// transport trusts the certificates that Velero trusts for the location.
func (o *Opener) transport(
	ctx context.Context, action string, location *velerov1.BackupStorageLocation,
) (*http.Transport, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = answerTimeout
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	certificates := location.Spec.ObjectStorage.CACert
	if ref := location.Spec.ObjectStorage.CACertRef; ref != nil && len(certificates) == 0 {
		var err error
		if certificates, err = o.secret(ctx, action, location.Namespace, ref); err != nil {
			return nil, err
		}
	}
	if len(certificates) > 0 {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(certificates) {
			return nil, unusable(action, "what it names as CA certificate holds none")
		}
		transport.TLSClientConfig.RootCAs = roots
	}
	skip, err := flag(action, location.Spec.Config, "insecureSkipTLSVerify")
	transport.TLSClientConfig.InsecureSkipVerify = skip
	return transport, err
}

// flag reads a switch of a location's configuration.
func flag(action string, config map[string]string, key string) (bool, error) {
	if config[key] == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(config[key])
	if err != nil {
		return false, unusable(action, "config.%s must be true or false", key)
	}
	return on, nil
}
