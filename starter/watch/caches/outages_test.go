package caches

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

var (
	errRefused  = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errNotReady = apierrors.NewServiceUnavailable("starting")
	errNoRight  = error(apierrors.NewForbidden(velerov1.Resource("backups"), "", nil))
)

func TestWhichErrorsAreAnOutage(t *testing.T) {
	backups := velerov1.Resource("backups")
	tooLarge := apierrors.NewTimeoutError("Too large resource version: 9, current: 2", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	for title, test := range map[string]struct {
		err  error
		want bool
	}{
		"none":                          {nil, false},
		"the connection is refused":     {errRefused, true},
		"it does not answer":            {context.DeadlineExceeded, true},
		"it closes the connection":      {&url.Error{Op: "Get", URL: "https://api", Err: io.EOF}, true},
		"it breaks off its answer":      {fmt.Errorf("unexpected error when reading response body: %w", io.ErrUnexpectedEOF), true},
		"it resets the stream":          {http2.StreamError{StreamID: 1, Code: http2.ErrCodeInternal}, true},
		"it does not take ours":         {&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, false},
		"its certificate is another's":  {&url.Error{Op: "Get", URL: "https://api", Err: x509.UnknownAuthorityError{}}, false},
		"its answer is not understood":  {errors.New("unable to decode an event from the watch stream"), false},
		"it starts":                     {errNotReady, true},
		"it starts without rights":      {errNoRight, true},
		"it starts without accounts":    {apierrors.NewUnauthorized("starting"), true},
		"it has too much to do":         {apierrors.NewTooManyRequestsError("busy"), true},
		"its storage is away":           {apierrors.NewGenericServerResponse(http.StatusInternalServerError, "list", backups, "", "etcd", 0, true), true},
		"the process stops":             {context.Canceled, false},
		"the kind is not served":        {apierrors.NewNotFound(backups, ""), false},
		"the version is forgotten":      {apierrors.NewResourceExpired("too old"), false},
		"the version is from elsewhere": {tooLarge, false},
	} {
		assert.Equal(t, test.want, away(test.err), title)
	}
}

// interrupted is an API server that serves empty lists in pages, and watches, but not during an outage.
type interrupted struct {
	mutex  sync.Mutex
	outage error
	stream *watch.FakeWatcher
}

func (s *interrupted) list(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return &velerov1.BackupList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, s.outage
}

func (s *interrupted) watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.outage != nil {
		return nil, s.outage
	}
	s.stream = watch.NewFake()
	return s.stream, nil
}

// begin begins an outage, and end ends it.
func (s *interrupted) begin(outage error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.outage = outage
	s.stream.Stop()
}

func (s *interrupted) end() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.outage = nil
}

func (s *interrupted) isWatched() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return !s.stream.IsStopped()
}

// An informer notices within two seconds that the API server is back, however long it was away, and whatever a starting API server
// answers.
func TestAnInformerCatchesUpSoonAfterAnOutage(t *testing.T) {
	for title, outage := range map[string]error{"stopped": errRefused, "starting": errNotReady, "without rights": errNoRight} {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, refusals := &interrupted{}, &Refusals{}
				lists := &toolscache.ListWatch{ListWithContextFunc: server.list, WatchFuncWithContext: server.watch}
				informer := newInformer(trimmed, refusals.Take)(lists, &velerov1.Backup{}, 0, toolscache.Indexers{})
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { informer.RunWithContext(ctx) })
				time.Sleep(time.Minute)

				server.begin(outage)
				time.Sleep(5 * time.Minute)
				require.False(t, server.isWatched())
				assert.Equal(t, errors.Is(outage, errNoRight), refusals.Recent() != nil)

				server.end()
				time.Sleep(2 * time.Second)
				assert.True(t, server.isWatched())
				stop()
				running.Wait()
			})
		})
	}
}
