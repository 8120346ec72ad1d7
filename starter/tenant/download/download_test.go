package download_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

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
		case "/elsewhere":
			http.Redirect(w, r, "https://metadata.internal/credentials", http.StatusFound)
		case "/unencrypted":
			http.Redirect(w, r, "http://"+r.Host+"/log", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/denied":
			w.WriteHeader(http.StatusForbidden)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// trusting fetches from the store.
func trusting(t *testing.T, server *httptest.Server) *download.Fetcher {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(block), 0o600))
	fetcher, err := download.New(ca)
	require.NoError(t, err)
	return fetcher
}

func TestAFileIsFetchedAndUnpacked(t *testing.T) {
	t.Parallel()
	server := store(t)
	fetcher := trusting(t, server)
	var out bytes.Buffer
	require.NoError(t, fetcher.Copy(t.Context(), &out, server.URL+"/log?"+signature))
	assert.Equal(t, "all good\n", out.String())
	for path, want := range map[string]string{
		"/none": "has no such file", "/denied": "403 Forbidden", "/plain": "unpack the file",
		"/elsewhere": "redirects to another server, https://metadata.internal", "/unencrypted": "redirects to another server, http://",
		"/round": "redirects without end",
	} {
		err := fetcher.Copy(t.Context(), &out, server.URL+path+"?"+signature)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "Signature", "the URL opens the file to anyone")
	}
}

// answers is a store that needs no network, so that its time can be a test's.
type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(request *http.Request) (*http.Response, error) { return a(request) }

func TestAStoreThatFallsSilentIsGivenUp(t *testing.T) {
	t.Parallel()
	stores := map[string]answers{
		"before its answer": func(request *http.Request) (*http.Response, error) {
			<-request.Context().Done()
			return nil, request.Context().Err()
		},
		"within its answer": func(request *http.Request) (*http.Response, error) {
			body, beginning := io.Pipe()
			context.AfterFunc(request.Context(), func() { beginning.CloseWithError(request.Context().Err()) })
			return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
		},
	}
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				err := download.Over(store).Copy(t.Context(), &bytes.Buffer{}, "https://store/log?"+signature)
				require.ErrorContains(t, err, "sends nothing any more")
				assert.NotContains(t, err.Error(), "Signature")
			})
		})
	}
}

// pager is one that nobody scrolls for an hour.
type pager struct{ bytes.Buffer }

func (p *pager) Write(text []byte) (int, error) {
	time.Sleep(time.Hour)
	return p.Buffer.Write(text)
}

func TestAReaderMayPause(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	packed := gzip.NewWriter(&file)
	_, err := packed.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, packed.Close())
	synctest.Test(t, func(t *testing.T) {
		var out pager
		store := answers(func(request *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: &body{bytes.NewReader(file.Bytes()), request.Context()}}, nil
		})
		require.NoError(t, download.Over(store).Copy(t.Context(), &out, "https://store/log?"+signature))
		assert.Equal(t, 1<<20, out.Len())
	})
}

// body is read in small pieces, and no longer than its request lives.
type body struct {
	file io.Reader
	ctx  context.Context
}

func (b *body) Read(into []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.file.Read(into[:min(len(into), 64)])
}

func (*body) Close() error { return nil }

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
