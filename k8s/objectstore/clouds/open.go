package clouds

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"gocloud.dev/blob"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/objectstore/trust"
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
	credential, err := trust.Secret(ctx, o.Reader, location.Namespace, credentialOf(location))
	if err != nil {
		return nil, asUnusable(action, err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = answerTimeout
	if transport.TLSClientConfig, err = trust.Of(ctx, o.Reader, location); err != nil {
		return nil, asUnusable(action, err)
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
