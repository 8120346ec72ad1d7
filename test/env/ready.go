package env

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"holdfast.dev/holdfast/test/env/spawn"
)

var errEnded = errors.New("ended before it was ready")

// waitReady polls the component's readiness until it holds, the run ends or the time is up.
func (p *Process) waitReady(ctx context.Context, r *run) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(p.command.readyTimeout, readyTimeout))
	defer cancel()
	poll := time.NewTicker(readyPoll)
	defer poll.Stop()
	for {
		probe, cancelProbe := context.WithTimeout(ctx, probeTimeout)
		err := p.command.ready(probe)
		cancelProbe()
		if err == nil {
			return nil
		}
		select {
		case <-r.exited:
			return p.failure(fmt.Errorf("%s %w: %w", p.Name(), errEnded, exitError(r.err)))
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return fmt.Errorf("start %s: %w", p.Name(), ctx.Err())
			}
			return p.failure(fmt.Errorf("%s is not ready: %w", p.Name(), err))
		case <-poll.C:
		}
	}
}

func exitError(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// failure adds to an error what the component said last.
func (p *Process) failure(err error) error {
	return fmt.Errorf("%w\nend of %s:\n  %s", err, p.LogPath(), indented(p.LogTail(25)))
}

// LogTail returns the last lines of the component's log.
func (p *Process) LogTail(lines int) string { return spawn.LogTail(p.LogPath(), lines) }

// probeClient makes each probe on a connection of its own: a paused process must not look ready through an old one, nor
// leave idle connections behind.
var probeClient = &http.Client{Transport: &http.Transport{
	DisableKeepAlives: true,
	Proxy:             nil,
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // our own process on loopback
}}

// httpReady returns a readiness check: GET url answers 200. A non-empty token is sent as bearer.
func httpReady(url, token string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := probeClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, 2048))
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("GET %s: %s: %s", url, response.Status, bytes.TrimSpace(body))
		}
		return nil
	}
}
