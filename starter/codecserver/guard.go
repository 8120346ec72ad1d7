package codecserver

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
)

const (
	// minToken is the shortest token taken: what `openssl rand -base64 24` gives.
	minToken = 32
	// maxTokenForm is more than a login form with a token takes.
	maxTokenForm = 4096

	sessionCookie = "holdfast-codec"
	sessionTime   = 12 * time.Hour

	bearer = "Bearer "
)

// codecGuard decides who may see payloads: clients that send the token, as a bearer, or a session that the token started. The
// Web UI without single sign-on cannot send a bearer, but the browser sends the session's cookie.
type codecGuard struct {
	tokenFile string
	origin    string // of the Web UI
	secure    bool   // served with TLS
	log       *zap.Logger
}

// token is read for each request: a Secret that changes is in force at once.
func (g *codecGuard) token() (string, error) {
	content, err := os.ReadFile(g.tokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(content))
	if len(token) < minToken || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("--token-file: %s: must have at least %d characters, in one line", g.tokenFile, minToken)
	}
	return token, nil
}

// protect lets through what comes with the token, and from no other page than the Web UI.
func (g *codecGuard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if origin != "" && origin != g.origin {
			g.refuse(w, r, "this page may not request payloads: its origin is not --web-ui-origin", http.StatusForbidden)
			return
		}
		if origin != "" {
			w.Header().Set("Access-Control-Allow-Origin", origin)
			w.Header().Set("Access-Control-Allow-Credentials", "true")
		}
		switch r.Method {
		case http.MethodOptions: // the browser asks whether the page may ask
			w.Header().Set("Access-Control-Allow-Methods", http.MethodPost)
			w.Header().Set("Access-Control-Allow-Headers", "Authorization, Authorization-Extras, Content-Type, X-Namespace")
			w.WriteHeader(http.StatusNoContent)
			return
		case http.MethodPost:
		default:
			w.Header().Set("Allow", "POST, OPTIONS")
			http.Error(w, "the method must be POST", http.StatusMethodNotAllowed)
			return
		}
		token, err := g.token()
		if err != nil {
			g.log.Error("read token", zap.Error(err))
			http.Error(w, "the server's token cannot be read; its log says why", http.StatusInternalServerError)
			return
		}
		if !g.known(r, token) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			g.refuse(w, r, "the token of --token-file is required: in Authorization: Bearer, or entered at /login",
				http.StatusUnauthorized)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func (g *codecGuard) refuse(w http.ResponseWriter, r *http.Request, why string, status int) {
	g.log.Warn("refused to show payloads", zap.String("remote", r.RemoteAddr), zap.String("origin", r.Header.Get("Origin")),
		zap.String("reason", why))
	http.Error(w, why, status)
}

// known reports whether a request shows the token or a session made with it. A bearer, once given, decides alone.
func (g *codecGuard) known(r *http.Request, token string) bool {
	if shown := r.Header.Get("Authorization"); shown != "" {
		scheme, value, _ := strings.Cut(shown, " ")
		return strings.EqualFold(scheme+" ", bearer) && same(value, token)
	}
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return false
	}
	until, _, _ := strings.Cut(cookie.Value, ".")
	seconds, err := strconv.ParseInt(until, 10, 64)
	return err == nil && time.Now().Before(time.Unix(seconds, 0)) && same(cookie.Value, session(token, until))
}

// session is a cookie's value: its end, and a proof that its maker knew the token.
func session(token, until string) string {
	proof := hmac.New(sha256.New, []byte(token))
	proof.Write([]byte("holdfast codec session until " + until))
	return until + "." + hex.EncodeToString(proof.Sum(nil))
}

// same compares in constant time.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

const loginPage = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Holdfast codec server</title>
<form method="post" action="login">
<label>Token <input type="password" name="token" autofocus></label> <button>Log in</button>
</form>
`

func (g *codecGuard) showLogin(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; form-action 'self'; frame-ancestors 'none'")
	_, _ = w.Write([]byte(loginPage))
}

// login starts a session for a client that enters the token. The cookie goes only to pages of the same site: Web UI and codec
// server must share their registrable domain, or both run on localhost.
func (g *codecGuard) login(w http.ResponseWriter, r *http.Request) {
	token, err := g.token()
	if err != nil {
		g.log.Error("read token", zap.Error(err))
		http.Error(w, "the server's token cannot be read; its log says why", http.StatusInternalServerError)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxTokenForm)
	if !same(strings.TrimSpace(r.PostFormValue("token")), token) {
		g.refuse(w, r, "this is not the token of --token-file", http.StatusUnauthorized)
		return
	}
	until := time.Now().Add(sessionTime)
	http.SetCookie(w, &http.Cookie{
		Name: sessionCookie, Value: session(token, strconv.FormatInt(until.Unix(), 10)), Path: "/", Expires: until,
		HttpOnly: true, Secure: g.secure, SameSite: http.SameSiteStrictMode,
	})
	_, _ = w.Write([]byte("You are logged in for 12 hours. Go back to Temporal's Web UI and reload.\n"))
}
