package e2e_test

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

// detour is a way to the API server on which a request can be held up.
type detour struct {
	kubeconfig string
	server     *url.URL
	transport  http.RoundTripper // says whose requests they are
	closed     chan struct{}     // closed at the end of the test

	mu   sync.Mutex
	held *heldRequest
}

// heldRequest is the first request that matches; the ones after it pass.
type heldRequest struct {
	match  func(request *http.Request, body string) bool
	caught chan struct{} // closed when the request is here
	letGo  chan struct{} // to be closed for it to go on, whether or not its sender still waits for the answer
	code   chan int      // the API server's answer
}

// newDetour makes a way on which everybody is the given user.
func newDetour(t *testing.T, user string) *detour {
	t.Helper()
	config, err := stack.RESTConfig(user)
	require.NoError(t, err)
	d := &detour{closed: make(chan struct{}), kubeconfig: filepath.Join(t.TempDir(), "detour.kubeconfig")}
	d.transport, err = rest.TransportFor(config)
	require.NoError(t, err)
	d.server, err = url.Parse(config.Host)
	require.NoError(t, err)
	server := httptest.NewServer(d)
	t.Cleanup(func() {
		close(d.closed)
		server.CloseClientConnections()
		server.Close()
	})
	file := clientcmdapi.NewConfig()
	file.Clusters["detour"] = &clientcmdapi.Cluster{Server: server.URL}
	file.Contexts["detour"] = &clientcmdapi.Context{Cluster: "detour"}
	file.CurrentContext = "detour"
	require.NoError(t, clientcmd.WriteToFile(*file, d.kubeconfig))
	return d
}

// holdStatus holds the next patch of the object's status whose body has the text.
func (d *detour) holdStatus(nab *oadpv1alpha1.NonAdminBackup, text string) *heldRequest {
	return d.hold(func(request *http.Request, body string) bool {
		return request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, pathOf(nab)+"/status") &&
			strings.Contains(body, text)
	})
}

// awaitRequest waits for the next request for the object, which then passes.
func (d *detour) awaitRequest(t *testing.T, nab *oadpv1alpha1.NonAdminBackup) {
	t.Helper()
	next := d.hold(func(request *http.Request, _ string) bool { return strings.Contains(request.URL.Path, pathOf(nab)) })
	close(next.letGo)
	next.await(t)
}

func pathOf(nab *oadpv1alpha1.NonAdminBackup) string {
	return "/namespaces/" + nab.Namespace + "/" + oadpv1alpha1.ResourceNonAdminBackups + "/" + nab.Name
}

// hold holds the next request that matches.
func (d *detour) hold(match func(request *http.Request, body string) bool) *heldRequest {
	held := &heldRequest{match: match, caught: make(chan struct{}), letGo: make(chan struct{}), code: make(chan int, 1)}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = held
	return held
}

func (d *detour) catch(request *http.Request, body string) *heldRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	held := d.held
	if held == nil || !held.match(request, body) {
		return nil
	}
	d.held = nil
	return held
}

// ServeHTTP implements http.Handler.
func (d *detour) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender has hung up
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(d.server) },
		Transport:     d.transport,
		FlushInterval: -1,                         // watches
		ErrorLog:      log.New(io.Discard, "", 0), // senders that hang up, an API server that is away
	}
	if held := d.catch(request, string(body)); held != nil {
		close(held.caught)
		select {
		case <-held.letGo:
		case <-d.closed: // the test has failed: nobody lets go
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(request.Context()), patience)
		defer cancel()
		request = request.WithContext(ctx)
		proxy.ModifyResponse = func(response *http.Response) error {
			held.code <- response.StatusCode
			return nil
		}
	}
	proxy.ServeHTTP(answer, request)
}

func (h *heldRequest) await(t *testing.T) {
	t.Helper()
	select {
	case <-h.caught:
	case <-time.After(patience):
		require.Fail(t, "the request did not come")
	}
}

// answered returns the API server's answer to a request that was let go.
func (h *heldRequest) answered(t *testing.T) int {
	t.Helper()
	select {
	case code := <-h.code:
		return code
	case <-time.After(patience):
		require.Fail(t, "the API server did not answer")
		return 0
	}
}
