package download_test

import (
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/starter/tenant/download"
)

const signature = "X-Amz-Signature=of-the-URL"

// store serves a log, and errors.
func store(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/log":
			packed := gzip.NewWriter(w)
			_, _ = packed.Write([]byte("all good\n"))
			_ = packed.Close()
		case "/plain":
			_, _ = w.Write([]byte("no gzip"))
		case "/denied":
			w.WriteHeader(http.StatusForbidden)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestAFileIsFetchedAndUnpacked(t *testing.T) {
	t.Parallel()
	server := store(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(block), 0o600))
	fetcher, err := download.New(ca)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, fetcher.Copy(t.Context(), &out, server.URL+"/log?"+signature))
	assert.Equal(t, "all good\n", out.String())
	for path, want := range map[string]string{
		"/none": "has no such file", "/denied": "403 Forbidden", "/plain": "unpack the file",
	} {
		err := fetcher.Copy(t.Context(), &out, server.URL+path+"?"+signature)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "Signature", "the URL opens the file to anyone")
	}
}

func TestAStoreThatIsNotTrustedIsNotAsked(t *testing.T) {
	t.Parallel()
	fetcher, err := download.New("")
	require.NoError(t, err)
	err = fetcher.Copy(t.Context(), &bytes.Buffer{}, store(t).URL+"/log?"+signature)
	require.ErrorContains(t, err, "certificate")
	assert.NotContains(t, err.Error(), "Signature")
}

func TestAFileOfCertificatesHoldsSome(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, err := download.New(empty)
	require.ErrorContains(t, err, "holds no certificate in PEM")
}
