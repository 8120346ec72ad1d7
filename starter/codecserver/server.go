package codecserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/converter"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"holdfast.dev/holdfast/k8s/probe"
	"holdfast.dev/holdfast/k8s/process"
	"holdfast.dev/holdfast/workflows/codec"
)

const (
	codecHeaderTimeout = 5 * time.Second
	// codecReadTimeout is for a whole request: who has no token must not keep one open either.
	codecReadTimeout = 10 * time.Second
	codecIdleTimeout = time.Minute
	codecStopTimeout = 5 * time.Second
	// maxCodecRequest is several times what Temporal takes in one message.
	maxCodecRequest = 16 << 20
)

// codecFlags are the settings of the codec server.
type codecFlags struct {
	listenAddress  string
	payloadKeysDir string
	tokenFile      string
	webUIOrigin    string
	tlsCertFile    string
	tlsKeyFile     string
	logs           process.Flags // of which --log-level and --log-format are offered
}

// Command returns `holdfast codec-server`.
func Command() *cobra.Command {
	var flags codecFlags
	command := &cobra.Command{
		Use:   "codec-server",
		Short: "Show encrypted payloads to the users of Temporal's Web UI and command line",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := flags.Validate(); err != nil {
				return err
			}
			return runCodecServer(command.Context(), &flags)
		},
	}
	set := command.Flags()
	set.StringVar(&flags.listenAddress, "listen-address", "127.0.0.1:8089", "address to serve at")
	process.BindPayloadKeysDir(set, &flags.payloadKeysDir)
	set.StringVar(&flags.tokenFile, "token-file", "", "file with the token that users of this server must present")
	set.StringVar(&flags.webUIOrigin, "web-ui-origin", "",
		"scheme and host of Temporal's Web UI, as the browser shows it; no browser page may request payloads if empty")
	set.StringVar(&flags.tlsCertFile, "tls-cert-file", "", "certificate to serve with; plain HTTP if empty")
	set.StringVar(&flags.tlsKeyFile, "tls-key-file", "", "key of --tls-cert-file")
	process.BindLogs(set, &flags.logs)
	return command
}

func (f *codecFlags) Validate() error {
	_, port, addressErr := net.SplitHostPort(f.listenAddress)
	checks := []struct {
		ok   bool
		flag string
		want string
	}{
		{addressErr == nil && port != "", "listen-address", "host:port or :port"},
		{f.payloadKeysDir != "", "payload-keys-dir", "the folder that worker and watcher have"},
		{f.tokenFile != "", "token-file", "a file with a token: requests without it are refused"},
		{
			f.webUIOrigin == "" || validOrigin(f.webUIOrigin), "web-ui-origin",
			"scheme://host[:port] without a path, like https://temporal.example.com",
		},
		{(f.tlsCertFile == "") == (f.tlsKeyFile == ""), "tls-key-file", "set together with --tls-cert-file, or not at all"},
	}
	for _, check := range checks {
		if !check.ok {
			return fmt.Errorf("--%s: must be %s", check.flag, check.want)
		}
	}
	return f.logs.ValidateLogs()
}

// validOrigin reports whether origin is what a browser sends as one.
func validOrigin(origin string) bool {
	parsed, err := url.Parse(origin)
	return err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https") && parsed.Host != "" &&
		origin == parsed.Scheme+"://"+parsed.Host
}

func runCodecServer(ctx context.Context, flags *codecFlags) error {
	logger, err := flags.logs.Logger()
	if err != nil {
		return err
	}
	keys, err := codec.Open(flags.payloadKeysDir)
	if err != nil {
		return err
	}
	guard := &codecGuard{tokenFile: flags.tokenFile, origin: flags.webUIOrigin, secure: flags.tlsCertFile != "", log: logger}
	if _, err := guard.token(); err != nil {
		return err
	}
	prober := probe.New(logger, probe.Check{Name: "payload-keys", Probe: keys.Refresh, Every: codec.RefreshInterval})
	go prober.Run(ctx)
	return serveCodec(ctx, logger, flags, codecHandler(keys, guard, prober))
}

// codecHandler serves /decode and /encode to callers that the guard lets in, its login page, and the probes to all.
func codecHandler(keys *codec.Keys, guard *codecGuard, prober *probe.Prober) http.Handler {
	payloads := guard.protect(http.MaxBytesHandler(converter.NewPayloadCodecHTTPHandler(codec.New(keys)), maxCodecRequest))
	mux := http.NewServeMux()
	mux.Handle("/decode", payloads)
	mux.Handle("/encode", payloads)
	mux.HandleFunc("GET /login", guard.showLogin)
	mux.HandleFunc("POST /login", guard.login)
	mux.Handle("GET /healthz", prober.Handler())
	mux.Handle("GET /readyz", prober.Handler())
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "this is Holdfast's codec server: POST /decode, POST /encode, or open /login in a browser", http.StatusNotFound)
	})
	return mux
}

// newCodecServer returns a server that no slow or silent client can hold up.
func newCodecServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: codecHeaderTimeout, ReadTimeout: codecReadTimeout, IdleTimeout: codecIdleTimeout,
	}
}

// serveCodec answers until ctx ends.
func serveCodec(ctx context.Context, logger *zap.Logger, flags *codecFlags, handler http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", flags.listenAddress)
	if err != nil {
		return fmt.Errorf("--listen-address: %w", err)
	}
	if flags.tlsCertFile != "" {
		certificates, err := certwatcher.New(flags.tlsCertFile, flags.tlsKeyFile)
		if err != nil {
			return fmt.Errorf("--tls-cert-file: %w", err)
		}
		go func() {
			if err := certificates.Start(ctx); err != nil {
				logger.Error("watch the certificate", zap.Error(err))
			}
		}()
		listener = tls.NewListener(listener, &tls.Config{
			GetCertificate: certificates.GetCertificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		})
	} else if host, _, _ := net.SplitHostPort(listener.Addr().String()); !net.ParseIP(host).IsLoopback() {
		logger.Warn("serving payloads and tokens in clear beyond this machine: set --tls-cert-file, or have a proxy encrypt")
	}
	server := newCodecServer(handler)
	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(stopped)
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), codecStopTimeout)
		defer cancel()
		_ = server.Shutdown(limited)
	})
	logger.Info("serving payloads", zap.Stringer("address", listener.Addr()), zap.Bool("tls", flags.tlsCertFile != ""))
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve payloads: %w", err)
	}
	<-stopped
	return nil
}
