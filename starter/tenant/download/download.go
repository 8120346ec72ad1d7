package download

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"
)

// Fetcher fetches files.
type Fetcher struct{ client *http.Client }

const (
	// answerTimeout is how long the object store may take to begin its answer, and to go on with it.
	answerTimeout = 30 * time.Second
	maxRedirects  = 10
)

var errSilent = errors.New("the object store sends nothing any more")

// New returns a Fetcher that trusts the system's certificates and those of a file in PEM, if one is named.
func New(caFile string) (*Fetcher, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true // the file is gzip itself
	if caFile != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, err
		}
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, err
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate in PEM", caFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return Over(transport), nil
}

// Over returns a Fetcher that sends its requests over transport.
func Over(transport http.RoundTripper) *Fetcher {
	return &Fetcher{&http.Client{Transport: transport, CheckRedirect: sameHost}}
}

// sameHost follows redirects within the object store alone.
func sameHost(next *http.Request, before []*http.Request) error {
	switch first := before[0].URL; {
	case len(before) >= maxRedirects:
		return errors.New("it redirects without end")
	case next.URL.Host != first.Host || next.URL.Scheme != first.Scheme:
		return fmt.Errorf("it redirects to another server, %s://%s", next.URL.Scheme, next.URL.Host)
	}
	return nil
}

// Copy writes the unpacked file to out.
func (f *Fetcher) Copy(ctx context.Context, out io.Writer, signed string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, signed, nil)
	if err != nil {
		return errors.New("fetch the file: Velero's URL is none")
	}
	idle := time.AfterFunc(answerTimeout, func() { cancel(errSilent) })
	defer idle.Stop()
	answer, err := f.client.Do(request)
	idle.Stop()
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the URL
		}
		return fmt.Errorf("fetch the file from %s: %w", request.URL.Host, cmp.Or(context.Cause(ctx), err))
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return fmt.Errorf("the object store %s has no such file: Velero has not written it", request.URL.Host)
	default:
		return fmt.Errorf("the object store %s answered %s", request.URL.Host, answer.Status)
	}
	unpacked, err := gzip.NewReader(&watched{answer.Body, idle})
	if err != nil {
		return fmt.Errorf("unpack the file from %s: %w", request.URL.Host, cmp.Or(context.Cause(ctx), err))
	}
	if _, err := io.Copy(out, unpacked); err != nil { // as long as the log is: it is printed as it comes
		return fmt.Errorf("fetch the file from %s: %w", request.URL.Host, cmp.Or(context.Cause(ctx), err))
	}
	return unpacked.Close()
}

// watched is an answer that may not be silent for long while somebody reads it: who reads slowly is free to.
type watched struct {
	io.Reader

	idle *time.Timer
}

func (w *watched) Read(into []byte) (n int, err error) {
	w.idle.Reset(answerTimeout)
	defer w.idle.Stop()
	return w.Reader.Read(into)
}
