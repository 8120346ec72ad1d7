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
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/process/points"
)

var step = points.Point{Step: "create", Form: points.Local}

func TestTheDriverActsAtItsMomentOnly(t *testing.T) {
	d := NewDriver()
	defer d.Close()
	t.Setenv(points.EnvURL, d.URL())
	acted, order := 0, ""
	d.At(Moment{step, 2}, func() error { acted++; order += "first "; return nil })
	d.At(Moment{step, 2}, func() error { order += "second"; return nil })
	never := Moment{points.Point{Step: "never"}, 1}
	d.At(never, func() error { return errors.New("reached") })

	points.Report(t.Context(), step)
	points.Report(t.Context(), step)
	assert.Empty(t, d.Moments(), "not armed")
	d.Arm()
	for range 3 {
		points.Report(t.Context(), step)
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
	t.Setenv(points.EnvURL, d.URL())
	d.Arm()
	d.At(Moment{step, 1}, func() error { return errors.New("cannot kill") })
	points.Report(t.Context(), step)
	_, err := d.Pending()
	require.EqualError(t, err, "at before local create: cannot kill")
}

// A process stands at a point until the action has returned.
func TestAProcessWaitsAtAPoint(t *testing.T) {
	d := NewDriver()
	defer d.Close()
	t.Setenv(points.EnvURL, d.URL())
	d.Arm()
	here, goOn := make(chan struct{}), make(chan struct{})
	d.At(Moment{step, 1}, func() error { close(here); <-goOn; return nil })
	passed := make(chan struct{})
	go func() { points.Report(t.Context(), step); close(passed) }()
	<-here
	select {
	case <-passed:
		t.Fatal("it did not wait")
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	<-passed
}

func TestWithoutATestNobodyWaits(t *testing.T) {
	require.NoError(t, os.Unsetenv(points.EnvURL))
	points.Report(t.Context(), step)
	d := NewDriver()
	t.Setenv(points.EnvURL, d.URL())
	d.Close()
	points.Report(t.Context(), step)
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

// What is sent through a paused proxy arrives when it is resumed, on the same connection.
func TestAPausedProxyHoldsWhatIsOnItsWay(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	lines := make(chan string)
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		for scanner := bufio.NewScanner(connection); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	p, err := NewProxy(t.Context(), listener.Addr().String())
	require.NoError(t, err)
	defer p.Close()
	client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.Address())
	require.NoError(t, err)
	_, _ = fmt.Fprintln(client, "first")
	assert.Equal(t, "first", <-lines)

	p.Pause()
	_, _ = fmt.Fprintln(client, "second")
	select {
	case line := <-lines:
		t.Fatal("passed: " + line)
	case <-time.After(100 * time.Millisecond):
	}
	p.Resume()
	assert.Equal(t, "second", <-lines)
}
