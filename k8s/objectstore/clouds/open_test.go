package clouds

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"holdfast.dev/holdfast/k8s/objectstore"
)

const marker = "SECRETMARKER"

// server is an object store as far as the drivers ask one: what is put under a path is got from there.
type server struct {
	*httptest.Server
	mutex    sync.Mutex
	objects  map[string][]byte
	headers  []http.Header
	requests []string
	refuse   func(http.ResponseWriter) bool
}

func serve(t *testing.T, tls bool) *server {
	t.Helper()
	s := &server{objects: map[string][]byte{}}
	s.Server = httptest.NewUnstartedServer(s)
	if tls {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.headers = append(s.headers, r.Header.Clone())
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	if s.refuse != nil && s.refuse(w) {
		return
	}
	switch {
	case r.URL.Path == "/token":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"ya29","token_type":"Bearer","expires_in":3600}`)
	case strings.HasPrefix(r.URL.Path, "/upload/storage/v1/b/"):
		s.upload(w, r)
	case r.Method == http.MethodPut:
		s.objects[r.URL.Path], _ = io.ReadAll(r.Body)
		w.Header().Set("ETag", `"e"`)
		w.WriteHeader(map[bool]int{true: http.StatusCreated, false: http.StatusOK}[r.Header.Get("X-Ms-Version") != ""])
	default:
		content, found := s.objects[r.URL.Path]
		if !found {
			w.Header().Set("X-Ms-Error-Code", "BlobNotFound")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `<Error><Code>NoSuchKey</Code><Message>`+marker+`</Message></Error>`)
			return
		}
		w.Header().Set("Last-Modified", "Wed, 21 Oct 2026 07:28:00 GMT")
		w.Header().Set("ETag", `"e"`)
		_, _ = w.Write(content)
	}
}

// upload takes what Google's client sends: metadata and content in one request.
func (s *server) upload(w http.ResponseWriter, r *http.Request) {
	_, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	parts := multipart.NewReader(r.Body, params["boundary"])
	var about struct{ Name, Bucket string }
	if part, err := parts.NextPart(); err == nil {
		_ = json.NewDecoder(part).Decode(&about)
	}
	if part, err := parts.NextPart(); err == nil {
		content, _ := io.ReadAll(part)
		s.objects["/"+about.Bucket+"/"+about.Name] = content
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"name": about.Name, "bucket": about.Bucket})
}

// everywhere is a transport for which every host is the server.
func (s *server) everywhere() *http.Transport {
	transport := s.Client().Transport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
	}
	transport.TLSClientConfig.InsecureSkipVerify = true
	return transport
}

func location(provider string, config map[string]string) *velerov1.BackupStorageLocation {
	return &velerov1.BackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-adp", Name: "default"},
		Spec: velerov1.BackupStorageLocationSpec{
			Provider: provider, Config: config,
			Credential: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Key: "cloud"},
			StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{
				Bucket: "bucket", Prefix: "team/velero",
			}},
		},
	}
}

func secret(name, content string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-adp", Name: name}, Data: map[string][]byte{"cloud": []byte(content)},
	}
}

func opener(objects ...client.Object) *Opener {
	return &Opener{Reader: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()}
}

const awsFile = "[default]\naws_access_key_id = AKID\naws_secret_access_key = " + marker + "\n"

// works writes and reads a file and expects it under the location's prefix.
func works(t *testing.T, s *server, store *objectstore.Store) {
	t.Helper()
	written := objectstore.Results{objectstore.ErrorsKey: {Velero: []string{"x"}}}
	require.NoError(t, store.PutRestoreResults(t.Context(), "r", written))
	assert.Contains(t, s.objects, "/bucket/team/velero/restores/r/restore-r-results.gz")
	read, err := store.RestoreResults(t.Context(), "r")
	require.NoError(t, err)
	assert.Equal(t, written, read)
	_, err = store.BackupVolumes(t.Context(), "b", "team")
	require.ErrorIs(t, err, objectstore.ErrNotFound)
	assert.NotContains(t, err.Error(), marker)
	for _, header := range s.headers {
		assert.Empty(t, header.Get("Content-Encoding"))
	}
	require.NoError(t, store.Close())
}

func TestS3(t *testing.T) {
	for _, name := range []string{"aws", "velero.io/aws"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_ACCESS_KEY_ID", "of-the-process")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "of-the-process")
			t.Setenv("AWS_ENDPOINT_URL", "http://192.0.2.1")
			s := serve(t, false)
			store, err := opener(secret("keys", awsFile)).Open(t.Context(), location(name, map[string]string{
				"s3Url": s.URL, "s3ForcePathStyle": "true", "region": "minio", "checksumAlgorithm": "",
				"serverSideEncryption": "AES256", "tagging": "team=a",
			}))
			require.NoError(t, err)
			works(t, s, store)
			for i, header := range s.headers {
				assert.Contains(t, header.Get("Authorization"), "Credential=AKID/")
				assert.Contains(t, header.Get("Authorization"), "/minio/s3/aws4_request")
				if strings.HasPrefix(s.requests[i], "PUT") {
					assert.Equal(t, "AES256", header.Get("X-Amz-Server-Side-Encryption"))
					assert.Equal(t, "team=a", header.Get("X-Amz-Tagging"))
				}
			}
		})
	}
}

func TestS3WithACertificateOfItsOwn(t *testing.T) {
	s := serve(t, true)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	at := func() *velerov1.BackupStorageLocation {
		return location("aws", map[string]string{"s3Url": s.URL, "s3ForcePathStyle": "true"})
	}
	inline := at()
	inline.Spec.ObjectStorage.CACert = authority
	byReference := at()
	byReference.Spec.ObjectStorage.CACertRef = &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "ca"}, Key: "cloud",
	}
	skipped := at()
	skipped.Spec.Config["insecureSkipTLSVerify"] = "true"
	for title, good := range map[string]*velerov1.BackupStorageLocation{
		"inline": inline, "by reference": byReference, "not looked at": skipped,
	} {
		t.Run(title, func(t *testing.T) {
			store, err := opener(secret("keys", awsFile), secret("ca", string(authority))).Open(t.Context(), good)
			require.NoError(t, err)
			works(t, s, store)
		})
	}
	store, err := opener(secret("keys", awsFile)).Open(t.Context(), at())
	require.NoError(t, err)
	_, err = store.BackupVolumes(t.Context(), "b", "team")
	require.ErrorContains(t, err, "TLS certificate is not trusted")
}

func TestGoogle(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	pkcs, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	file, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "x@y.iam.gserviceaccount.com", "private_key_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs})),
		"token_uri":   "http://169.254.169.254/latest",
	})
	require.NoError(t, err)
	s := serve(t, true)
	store, err := openGCS(t.Context(), &access{
		action: "open", bucket: "bucket", prefix: "team/velero", config: map[string]string{"kmsKeyName": "k"},
		credential: file, transport: s.everywhere(),
	})
	require.NoError(t, err)
	works(t, s, store)
	assert.Contains(t, s.requests, "POST /token", "Google's, whatever the file says")
	assert.NotContains(t, s.requests, "POST /latest")
	assert.Equal(t, "Bearer ya29", s.headers[len(s.headers)-1].Get("Authorization"))
}

func TestAzure(t *testing.T) {
	s := serve(t, false)
	store, err := opener(secret("keys", "AZURE_CLOUD_NAME=AzurePublicCloud\nACCOUNT_KEY=U0VDUkVUTUFSS0VS\n")).Open(t.Context(),
		location("azure", map[string]string{
			"storageAccount": "account", "storageAccountKeyEnvVar": "ACCOUNT_KEY", "storageAccountURI": s.URL,
		}))
	require.NoError(t, err)
	works(t, s, store)
	for _, header := range s.headers {
		assert.Contains(t, header.Get("Authorization"), "SharedKey account:")
	}
}

func TestALocationThatCannotBeUsedSaysWhy(t *testing.T) {
	good := map[string]string{"s3Url": "http://127.0.0.1:1", "s3ForcePathStyle": "true"}
	with := func(key, value string) map[string]string {
		return map[string]string{"s3Url": "http://127.0.0.1:1", key: value}
	}
	for title, test := range map[string]struct {
		provider string
		config   map[string]string
		content  string
		want     string
	}{
		"another provider":     {"velero.io/fs", good, awsFile, `provider "velero.io/fs" is not known`},
		"no keys":              {"aws", good, "[default]\nrole_arn = " + marker, "no pair of keys"},
		"an empty Secret":      {"aws", good, "", `Secret openshift-adp/keys holds nothing under key "cloud"`},
		"a bad switch":         {"aws", with("s3ForcePathStyle", marker), awsFile, "config.s3ForcePathStyle must be true or false"},
		"a bad TLS switch":     {"aws", with("insecureSkipTLSVerify", marker), awsFile, "config.insecureSkipTLSVerify must be true or false"},
		"a bad URL":            {"aws", map[string]string{"s3Url": "file:///" + marker}, awsFile, "config.s3Url must be a URL"},
		"a key of Velero's":    {"aws", with("customerKeyEncryptionFile", marker), awsFile, "only Velero has"},
		"not a service":        {"gcp", nil, `{"type":"external_account","token_url":"` + marker + `"}`, "service account"},
		"no JSON":              {"gcp", nil, marker, "service account"},
		"another universe":     {"gcp", map[string]string{"universeDomain": "x"}, marker, "config.universeDomain"},
		"no account":           {"azure", nil, marker, "config.storageAccount is missing"},
		"no key":               {"azure", map[string]string{"storageAccount": "a", "storageAccountKeyEnvVar": "K"}, "L=" + marker, "no storage account key"},
		"a key that is none":   {"azure", map[string]string{"storageAccount": "a", "storageAccountKeyEnvVar": "K"}, "K=" + marker + "!", "no storage account key"},
		"a pod's identity":     {"azure", map[string]string{"storageAccount": "a"}, "AZURE_CLIENT_ID=" + marker, "can be used by Velero only"},
		"a bad certificate":    {"azure", map[string]string{"storageAccount": "a"}, "AZURE_TENANT_ID=t\nAZURE_CLIENT_ID=c\nAZURE_CLIENT_CERTIFICATE=" + marker, "cannot be used"},
		"a cloud of one's own": {"azure", map[string]string{"storageAccount": "a"}, "AZURE_CLOUD_NAME=" + marker, "AZURE_CLOUD_NAME"},
	} {
		t.Run(title, func(t *testing.T) {
			_, err := opener(secret("keys", test.content)).Open(t.Context(), location(test.provider, test.config))
			require.ErrorIs(t, err, objectstore.ErrUnusable)
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, err, "open BackupStorageLocation default: ")
			assert.NotContains(t, err.Error(), marker)
		})
	}
	t.Run("no Secret", func(t *testing.T) {
		_, err := opener().Open(t.Context(), location("aws", good))
		require.ErrorIs(t, err, objectstore.ErrUnusable)
		require.ErrorContains(t, err, "there is no Secret openshift-adp/keys")
	})
	t.Run("no bucket", func(t *testing.T) {
		none := location("aws", good)
		none.Spec.ObjectStorage = nil
		_, err := opener().Open(t.Context(), none)
		require.ErrorIs(t, err, objectstore.ErrUnusable)
	})
	t.Run("a certificate that is none", func(t *testing.T) {
		bad := location("aws", good)
		bad.Spec.ObjectStorage.CACert = []byte(marker)
		_, err := opener(secret("keys", awsFile)).Open(t.Context(), bad)
		require.ErrorIs(t, err, objectstore.ErrUnusable)
	})
}

func TestALocationWithoutCredentialUsesVelerosOwn(t *testing.T) {
	s := serve(t, false)
	plain := location("aws", map[string]string{"s3Url": s.URL, "s3ForcePathStyle": "true"})
	plain.Spec.Credential = nil
	store, err := opener(secret("cloud-credentials", awsFile)).Open(t.Context(), plain)
	require.NoError(t, err)
	works(t, s, store)
}

func TestWhatAStoreAnswersIsShownByItsCodeAlone(t *testing.T) {
	for title, test := range map[string]struct {
		refuse func(http.ResponseWriter) bool
		want   string
	}{
		"with a code": {func(w http.ResponseWriter) bool {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `<Error><Code>AccessDenied</Code><Message>`+marker+`</Message></Error>`)
			return true
		}, "the object store answered AccessDenied"},
		"with something else in its place": {func(w http.ResponseWriter) bool {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `<Error><Code>`+marker+` https://x</Code></Error>`)
			return true
		}, "the object store"},
		"by sending elsewhere": {func(w http.ResponseWriter) bool {
			w.Header().Set("Location", "http://127.0.0.1:1/"+marker)
			w.WriteHeader(http.StatusTemporaryRedirect)
			return true
		}, "the object store"},
	} {
		t.Run(title, func(t *testing.T) {
			s := serve(t, false)
			s.refuse = test.refuse
			store, err := opener(secret("keys", awsFile)).Open(t.Context(),
				location("aws", map[string]string{"s3Url": s.URL, "s3ForcePathStyle": "true"}))
			require.NoError(t, err)
			_, err = store.BackupVolumes(t.Context(), "b", "team")
			require.ErrorContains(t, err, test.want)
			require.NotErrorIs(t, err, objectstore.ErrUnusable)
			assert.NotContains(t, err.Error(), marker)
			assert.NotContains(t, err.Error(), "127.0.0.1")
		})
	}
	t.Run("nobody is there", func(t *testing.T) {
		store, err := opener(secret("keys", awsFile)).Open(t.Context(), // no port that another process may be given
			location("aws", map[string]string{"s3Url": "http://127.0.0.1:1", "s3ForcePathStyle": "true"}))
		require.NoError(t, err)
		_, err = store.BackupVolumes(t.Context(), "b", "team")
		require.ErrorContains(t, err, "the object store cannot be reached: connection refused")
	})
}

func TestAmazonIsAskedWhereABucketIs(t *testing.T) {
	for title, test := range map[string]struct {
		header, want string
		problem      bool
	}{
		"elsewhere":           {header: "eu-central-1", want: "eu-central-1"},
		"no answer":           {problem: true},
		"an answer of no use": {header: marker + "/../x", problem: true},
	} {
		t.Run(title, func(t *testing.T) {
			s := serve(t, true)
			s.refuse = func(w http.ResponseWriter) bool {
				w.Header().Set("X-Amz-Bucket-Region", test.header)
				w.WriteHeader(http.StatusMovedPermanently)
				return true
			}
			store, err := openS3(t.Context(), &access{
				action: "open", bucket: "bucket", config: map[string]string{"s3ForcePathStyle": "true"},
				credential: []byte(awsFile), transport: s.everywhere(),
			})
			if test.problem {
				require.Error(t, err)
				assert.NotContains(t, err.Error(), marker)
				return
			}
			require.NoError(t, err)
			_, _ = store.BackupVolumes(t.Context(), "b", "team")
			assert.Contains(t, s.headers[len(s.headers)-1].Get("Authorization"), "/"+test.want+"/s3/aws4_request")
		})
	}
}
