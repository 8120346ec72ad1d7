package codecserver

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.uber.org/zap"
	"google.golang.org/protobuf/encoding/protojson"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/k8s/probe"
	"holdfast.dev/holdfast/workflows/codec"
)

const (
	testToken = "0123456789abcdef0123456789abcdef"
	webUI     = "https://temporal.example.com"
)

type codecServer struct {
	t         *testing.T
	url       string
	tokenFile string
	keysDir   string
	keys      *codec.Keys
}

func startCodecServer(t *testing.T) *codecServer {
	t.Helper()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	file("keys/k1", base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0x81, 0x02}, 16)))
	file("keys/current", "k1")
	keysDir := filepath.Join(dir, "keys")
	keys, err := codec.Open(keysDir)
	require.NoError(t, err)
	s := &codecServer{t: t, keys: keys, keysDir: keysDir, tokenFile: file("token", testToken+"\n")}
	guard := &codecGuard{tokenFile: s.tokenFile, origin: webUI, log: zap.NewNop()}
	prober := probe.New(zap.NewNop(), probe.Check{Name: "payload-keys", Probe: keys.Refresh})
	server := httptest.NewServer(codecHandler(keys, guard, prober))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// reply is an answer that has been read.
type reply struct {
	status  int
	header  http.Header
	cookies []*http.Cookie
}

// ask sends a request with headers, given as "Name: value".
func (s *codecServer) ask(method, path string, body []byte, headers ...string) (reply, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, bytes.NewReader(body))
	require.NoError(s.t, err)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultTransport.RoundTrip(request)
	require.NoError(s.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	return reply{status: answer.StatusCode, header: answer.Header, cookies: answer.Cookies()}, string(text)
}

func (s *codecServer) encrypted() []byte {
	s.t.Helper()
	payload, err := codec.DataConverter(s.keys).ToPayload("shop/nightly")
	require.NoError(s.t, err)
	body, err := protojson.Marshal(&commonpb.Payloads{Payloads: []*commonpb.Payload{payload}})
	require.NoError(s.t, err)
	return body
}

// contentOf is the data of the first payload in an answer.
func contentOf(t *testing.T, answer string) (encoding, data string) {
	t.Helper()
	var payloads struct {
		Payloads []struct {
			Metadata map[string][]byte
			Data     []byte
		}
	}
	require.NoError(t, json.Unmarshal([]byte(answer), &payloads))
	require.Len(t, payloads.Payloads, 1)
	return string(payloads.Payloads[0].Metadata["encoding"]), string(payloads.Payloads[0].Data)
}

const withToken = "Authorization: Bearer " + testToken

func TestTheTokenOpensPayloads(t *testing.T) {
	s := startCodecServer(t)
	answer, text := s.ask(http.MethodPost, "/decode", s.encrypted(), withToken, "Content-Type: application/json", "X-Namespace: default")
	require.Equal(t, http.StatusOK, answer.status, text)
	_, data := contentOf(t, text)
	assert.Equal(t, `"shop/nightly"`, data)
	assert.Equal(t, "no-store", answer.header.Get("Cache-Control"))
	assert.Empty(t, answer.header.Get("Access-Control-Allow-Origin"), "no page asked")

	answer, text = s.ask(http.MethodPost, "/encode", []byte(`{"payloads":[{"metadata":{"encoding":"anNvbi9wbGFpbg=="},"data":"IngiCg=="}]}`), withToken)
	require.Equal(t, http.StatusOK, answer.status, text)
	encoding, _ := contentOf(t, text)
	assert.Equal(t, codec.Encoding, encoding)
}

// Temporal's own client of such servers, which the temporal command uses too.
func TestTemporalsClientUnderstandsTheServer(t *testing.T) {
	s := startCodecServer(t)
	remote := converter.NewRemoteDataConverter(converter.GetDefaultDataConverter(), converter.RemoteDataConverterOptions{
		Endpoint:      s.url,
		ModifyRequest: func(r *http.Request) error { r.Header.Set("Authorization", "Bearer "+testToken); return nil },
	})
	payload, err := remote.ToPayload("shop/nightly")
	require.NoError(t, err)
	var name string
	require.NoError(t, codec.DataConverter(s.keys).FromPayload(payload, &name))
	assert.Equal(t, "shop/nightly", name)
	assert.Equal(t, `"shop/nightly"`, remote.ToString(payload))
}

func TestOthersAreRefusedWithTheReason(t *testing.T) {
	s := startCodecServer(t)
	tests := map[string]struct {
		method, path string
		headers      []string
		status       int
		want         string
	}{
		"no token":                   {http.MethodPost, "/decode", nil, 401, "the token of --token-file is required: in Authorization: Bearer, or entered at /login"},
		"no token, encode":           {http.MethodPost, "/encode", nil, 401, "the token of --token-file is required"},
		"another token":              {http.MethodPost, "/decode", []string{withToken + "0"}, 401, "the token of --token-file is required"},
		"a part of it":               {http.MethodPost, "/decode", []string{"Authorization: Bearer " + testToken[:31]}, 401, "the token of --token-file is required"},
		"an empty token":             {http.MethodPost, "/decode", []string{"Authorization: Bearer "}, 401, "the token of --token-file is required"},
		"another scheme":             {http.MethodPost, "/decode", []string{"Authorization: Basic " + testToken}, 401, "the token of --token-file is required"},
		"a made-up session":          {http.MethodPost, "/decode", []string{"Cookie: holdfast-codec=99999999999.abcdef"}, 401, "the token of --token-file is required"},
		"a session of another token": {http.MethodPost, "/decode", []string{"Cookie: holdfast-codec=" + session("other", "99999999999")}, 401, "the token of --token-file is required"},
		"a session that has ended": {http.MethodPost, "/decode", []string{
			"Cookie: holdfast-codec=" + session(testToken, strconv.FormatInt(time.Now().Add(-time.Minute).Unix(), 10)),
		}, 401, "the token of --token-file is required"},
		"another page, with the token": {http.MethodPost, "/decode", []string{withToken, "Origin: https://evil.example.com"}, 403, "its origin is not --web-ui-origin"},
		"a page without origin":        {http.MethodPost, "/decode", []string{withToken, "Origin: null"}, 403, "its origin is not --web-ui-origin"},
		"another page asks first":      {http.MethodOptions, "/decode", []string{"Origin: https://evil.example.com"}, 403, "its origin is not"},
		"a look":                       {http.MethodGet, "/decode", []string{withToken}, 405, "the method must be POST"},
		"another path":                 {http.MethodPost, "/default/decode", []string{withToken}, 404, "POST /decode, POST /encode, or open /login in a browser"},
		"the root":                     {http.MethodGet, "/", nil, 404, "this is Holdfast's codec server"},
		"what is no request":           {http.MethodPost, "/decode", []string{withToken}, 400, ""},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			body := s.encrypted()
			if test.status == http.StatusBadRequest {
				body = []byte("nonsense")
			}
			answer, text := s.ask(test.method, test.path, body, test.headers...)
			assert.Equal(t, test.status, answer.status)
			assert.Contains(t, text, test.want)
			assert.NotContains(t, text, "nightly")
			if test.status == http.StatusForbidden {
				assert.Empty(t, answer.header.Get("Access-Control-Allow-Origin"))
			}
		})
	}
}

func TestAnUnreadablePayloadIsRefusedWithTheReason(t *testing.T) {
	s := startCodecServer(t)
	body := bytes.Replace(s.encrypted(), []byte(base64.StdEncoding.EncodeToString([]byte("k1"))),
		[]byte(base64.StdEncoding.EncodeToString([]byte("k2"))), 1)
	answer, text := s.ask(http.MethodPost, "/decode", body, withToken)
	assert.Equal(t, http.StatusBadRequest, answer.status)
	assert.Contains(t, text, `payload encrypted with key "k2": there is no such key`)
}

// What a browser does before and while the Web UI asks for payloads.
func TestTheWebUIMayAsk(t *testing.T) {
	s := startCodecServer(t)
	answer, _ := s.ask(http.MethodOptions, "/decode", nil, "Origin: "+webUI, "Access-Control-Request-Method: POST",
		"Access-Control-Request-Headers: authorization,content-type,x-namespace")
	assert.Equal(t, http.StatusNoContent, answer.status, "browsers send no token here")
	assert.Equal(t, webUI, answer.header.Get("Access-Control-Allow-Origin"))
	assert.Equal(t, "true", answer.header.Get("Access-Control-Allow-Credentials"))
	assert.Equal(t, "POST", answer.header.Get("Access-Control-Allow-Methods"))
	for _, header := range []string{"Authorization", "Authorization-Extras", "Content-Type", "X-Namespace"} {
		assert.Contains(t, answer.header.Get("Access-Control-Allow-Headers"), header)
	}
	assert.Equal(t, "Origin", answer.header.Get("Vary"))

	answer, text := s.ask(http.MethodPost, "/decode", s.encrypted(), "Origin: "+webUI, withToken)
	require.Equal(t, http.StatusOK, answer.status, text)
	assert.Equal(t, webUI, answer.header.Get("Access-Control-Allow-Origin"))
	_, data := contentOf(t, text)
	assert.Equal(t, `"shop/nightly"`, data)
}

// The Web UI without single sign-on has no token to send; the browser has a session after a visit to /login.
func TestABrowserLogsIn(t *testing.T) {
	s := startCodecServer(t)
	answer, page := s.ask(http.MethodGet, "/login", nil)
	assert.Equal(t, http.StatusOK, answer.status)
	assert.Contains(t, page, `name="token"`)
	assert.Contains(t, answer.header.Get("Content-Security-Policy"), "frame-ancestors 'none'")

	form := func(token string) []byte { return []byte(url.Values{"token": {token}}.Encode()) }
	const isForm = "Content-Type: application/x-www-form-urlencoded"
	answer, text := s.ask(http.MethodPost, "/login", form("wrong"), isForm)
	assert.Equal(t, http.StatusUnauthorized, answer.status)
	assert.Contains(t, text, "this is not the token")
	assert.Empty(t, answer.cookies)

	answer, _ = s.ask(http.MethodPost, "/login", form(testToken), isForm)
	require.Equal(t, http.StatusOK, answer.status)
	require.Len(t, answer.cookies, 1)
	cookie := answer.cookies[0]
	assert.True(t, cookie.HttpOnly)
	assert.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	assert.NotContains(t, cookie.Value, testToken)

	answer, text = s.ask(http.MethodPost, "/decode", s.encrypted(), "Origin: "+webUI, "Cookie: "+cookie.Name+"="+cookie.Value)
	require.Equal(t, http.StatusOK, answer.status, text)

	const newToken = "another-token-another-token-another"
	require.NoError(t, os.WriteFile(s.tokenFile, []byte(newToken), 0o600))
	answer, _ = s.ask(http.MethodPost, "/decode", s.encrypted(), "Origin: "+webUI, "Cookie: "+cookie.Name+"="+cookie.Value)
	assert.Equal(t, http.StatusUnauthorized, answer.status, "a new token ends all sessions at once")
	answer, _ = s.ask(http.MethodPost, "/decode", s.encrypted(), "Authorization: Bearer "+newToken)
	assert.Equal(t, http.StatusOK, answer.status)

	require.NoError(t, os.Remove(s.tokenFile))
	answer, text = s.ask(http.MethodPost, "/decode", s.encrypted(), "Authorization: Bearer ")
	assert.Equal(t, http.StatusInternalServerError, answer.status, "without a token nobody is let in")
	assert.Contains(t, text, "the server's token cannot be read; its log says why")
}

func TestTheCodecServerTellsItsHealth(t *testing.T) {
	s := startCodecServer(t)
	answer, _ := s.ask(http.MethodGet, "/healthz", nil)
	assert.Equal(t, http.StatusOK, answer.status)
	_, text := s.ask(http.MethodGet, "/readyz", nil)
	assert.Contains(t, text, "payload-keys: not checked yet")
}

// pair writes a certificate for 127.0.0.1 and its key.
func pair(t *testing.T, dir string, serial int64) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	certFile, keyFile, pool = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	require.NoError(t, os.WriteFile(certFile, certPEM, 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	return certFile, keyFile, pool
}

func TestTheCodecServerServesWithTLSUntilItIsStopped(t *testing.T) {
	s := startCodecServer(t)
	certFile, keyFile, pool := pair(t, t.TempDir(), 1)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	ended, stop := runCommand(t, "--payload-keys-dir="+s.keysDir, "--token-file="+s.tokenFile,
		"--tls-cert-file="+certFile, "--tls-key-file="+keyFile, "--listen-address="+address, "--log-level=error")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	eventually.Succeeds(t, time.Minute, func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+"/decode", bytes.NewReader(s.encrypted()))
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+testToken)
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		assert.Equal(t, http.StatusOK, answer.StatusCode)
		assert.Contains(t, string(text), base64.StdEncoding.EncodeToString([]byte(`"shop/nightly"`)))
		return nil
	})
	stop()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
}

func TestTheCodecServerWaitsForNobodyWithoutEnd(t *testing.T) {
	server := newCodecServer(http.NotFoundHandler())
	for what, limit := range map[string]time.Duration{
		"headers": server.ReadHeaderTimeout, "a request": server.ReadTimeout, "the next request": server.IdleTimeout,
	} {
		assert.Positive(t, limit, what)
		assert.LessOrEqual(t, limit, time.Minute, what)
	}
}

// runCommand runs the command in this process until stop is called.
func runCommand(t *testing.T, args ...string) (ended chan error, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	root := Command()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(args)
	root.SetErr(io.Discard)
	ended = make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	return ended, cancel
}

func TestBadSettingsOfTheCodecServerAreRefusedInOneLine(t *testing.T) {
	s := startCodecServer(t)
	keys, token := "--payload-keys-dir="+s.keysDir, "--token-file="+s.tokenFile
	short := filepath.Join(t.TempDir(), "short")
	require.NoError(t, os.WriteFile(short, []byte("secret"), 0o600))
	tests := map[string]struct {
		args []string
		want string
	}{
		"no keys":               {[]string{token}, "--payload-keys-dir: must be the folder that worker and watcher have"},
		"keys that are not":     {[]string{token, "--payload-keys-dir=/does/not/exist"}, "--payload-keys-dir: read keys: open /does/not/exist"},
		"no token":              {[]string{keys}, "--token-file: must be a file with a token"},
		"a token that is not":   {[]string{keys, "--token-file=/does/not/exist"}, "--token-file: open /does/not/exist"},
		"a short token":         {[]string{keys, "--token-file=" + short}, "--token-file: " + short + ": must have at least 32 characters, in one line"},
		"an origin with a path": {[]string{keys, token, "--web-ui-origin=https://ui.example.com/"}, "--web-ui-origin: must be scheme://host[:port] without a path"},
		"every origin":          {[]string{keys, token, "--web-ui-origin=*"}, "--web-ui-origin: must be"},
		"a host as origin":      {[]string{keys, token, "--web-ui-origin=ui.example.com"}, "--web-ui-origin: must be"},
		"half a key pair":       {[]string{keys, token, "--tls-cert-file=x"}, "--tls-key-file: must be set together"},
		"a bad certificate":     {[]string{keys, token, "--tls-cert-file=/does/not/exist", "--tls-key-file=/does/not/exist", "--listen-address=127.0.0.1:0"}, "--tls-cert-file: "},
		"a bad address":         {[]string{keys, token, "--listen-address=8089"}, "--listen-address: must be host:port"},
		"a bad log level":       {[]string{keys, token, "--log-level=loud"}, "--log-level: must be"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			ended, stop := runCommand(t, append([]string{}, test.args...)...)
			defer stop()
			err := <-ended
			require.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "\n")
			assert.NotContains(t, err.Error(), "secret")
		})
	}
}
