package outage

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/process/failpoint"
)

var step = failpoint.Point{Step: "create", Form: failpoint.Local}

func TestTheDriverActsAtItsMomentOnly(t *testing.T) {
	d := NewDriver()
	defer d.Close()
	t.Setenv(failpoint.EnvURL, d.URL())
	acted, order := 0, ""
	d.At(Moment{step, 2}, func() error { acted++; order += "first "; return nil })
	d.At(Moment{step, 2}, func() error { order += "second"; return nil })
	never := Moment{failpoint.Point{Step: "never"}, 1}
	d.At(never, func() error { return errors.New("reached") })

	failpoint.Report(t.Context(), step)
	failpoint.Report(t.Context(), step)
	assert.Empty(t, d.Moments(), "not armed")
	d.Arm()
	for range 3 {
		failpoint.Report(t.Context(), step)
	}
	assert.Equal(t, 1, acted)
	assert.Equal(t, "first second", order)
	assert.Equal(t, []Moment{{step, 1}, {step, 2}, {step, 3}}, d.Moments())
	waiting, err := d.Pending()
	require.NoError(t, err)
	assert.Equal(t, []Moment{never}, waiting)
}

func TestAnActionThatFailsIsTold(t *testing.T) {
	d := NewDriver()
	defer d.Close()
	t.Setenv(failpoint.EnvURL, d.URL())
	d.Arm()
	d.At(Moment{step, 1}, func() error { return errors.New("cannot kill") })
	failpoint.Report(t.Context(), step)
	_, err := d.Pending()
	require.EqualError(t, err, "at before local create: cannot kill")
}

// A process stands at a point until the action has returned.
func TestAProcessWaitsAtAPoint(t *testing.T) {
	d := NewDriver()
	defer d.Close()
	t.Setenv(failpoint.EnvURL, d.URL())
	d.Arm()
	here, goOn := make(chan struct{}), make(chan struct{})
	var returns atomic.Bool
	d.At(Moment{step, 1}, func() error { close(here); <-goOn; returns.Store(true); return nil })
	passed := make(chan bool, 1)
	go func() { failpoint.Report(t.Context(), step); passed <- returns.Load() }()
	receive(t, here)
	failpoint.Report(t.Context(), failpoint.Point{Step: "later"}) // passes meanwhile
	assert.Empty(t, passed)
	close(goOn)
	assert.True(t, receive(t, passed), "it did not wait")
}

// receive returns what comes through a channel.
func receive[Value any](t *testing.T, from <-chan Value) (value Value) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(time.Minute):
		require.Fail(t, "nothing has come within a minute")
	}
	return value
}

func TestWithoutATestNobodyWaits(t *testing.T) {
	require.NoError(t, os.Unsetenv(failpoint.EnvURL))
	failpoint.Report(t.Context(), step)
	d := NewDriver()
	t.Setenv(failpoint.EnvURL, d.URL())
	d.Close()
	failpoint.Report(t.Context(), step)
}

func TestTheProxyPassesOnWhatItGets(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "you asked ", r.URL.Path) }))
	defer server.Close()
	p, err := NewProxy(t.Context(), strings.TrimPrefix(server.URL, "http://"))
	require.NoError(t, err)
	defer p.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.Address()+"/x", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.Equal(t, "you asked /x", string(body))
}

// What is sent through a paused proxy arrives when it is resumed, on the same connection. Until then the server gets what comes
// another way, although it was sent later.
func TestAPausedProxyHoldsWhatIsOnItsWay(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	lines := make(chan string)
	read := func(connection net.Conn) {
		for scanner := bufio.NewScanner(connection); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go read(connection)
		}
	}()
	dial := func(address string) net.Conn {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		require.NoError(t, err)
		return connection
	}
	p, err := NewProxy(t.Context(), listener.Addr().String())
	require.NoError(t, err)
	defer p.Close()
	client := dial(p.Address())
	_, _ = fmt.Fprintln(client, "first")
	assert.Equal(t, "first", receive(t, lines))

	p.Pause()
	_, _ = fmt.Fprintln(client, "second")
	past := dial(listener.Addr().String())
	defer past.Close()
	_, _ = fmt.Fprintln(past, "third")
	assert.Equal(t, "third", receive(t, lines))
	p.Resume()
	assert.Equal(t, "second", receive(t, lines))
}
