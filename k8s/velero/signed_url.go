package velero

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/objectstore/trust"
)

// fileAge reads from the object store, by a URL that Velero has signed, how long ago a file was written; zero if there is none.
// Both times are the store's own. Nothing of the file is read, redirects are not followed, and no error shows the URL, because
// anyone who has it can read the file.
//
// reader reads the Secret with the certificates that an administrator's location may name.
func fileAge(
	ctx context.Context, reader client.Reader, location *velerov1.BackupStorageLocation, signed string,
) (time.Duration, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	var err error
	if transport.TLSClientConfig, err = trust.Of(ctx, reader, location); err != nil {
		return 0, fmt.Errorf("BackupStorageLocation %s: %w", location.Name, err)
	}
	defer transport.CloseIdleConnections()
	browser := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, signed, nil) // a HEAD would need another signature
	if err != nil {
		return 0, errors.New("the URL that Velero signed cannot be parsed")
	}
	request.Header.Set("Range", "bytes=0-0")
	response, err := browser.Do(request)
	if err != nil {
		return 0, fmt.Errorf("query the object store: %w", withoutURL(err))
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK, http.StatusPartialContent:
	case http.StatusNotFound:
		return 0, nil
	default:
		return 0, fmt.Errorf("query the object store: %s", response.Status)
	}
	written, err := http.ParseTime(response.Header.Get("Last-Modified"))
	if err != nil {
		return 0, fmt.Errorf("the object store does not say when the file was written: %w", err)
	}
	now, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(now.Sub(written), 0), nil
}

func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
