package env

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"holdfast.dev/holdfast/test/tools"
)

// temporalNamespace is the namespace that the dev server makes.
const temporalNamespace = "default"

func (e *Env) temporalDB() string { return e.path("data", "temporal.db") }

func (e *Env) startTemporal(ctx context.Context) error {
	if e.without(Temporal) {
		return nil
	}
	if other := e.options.Beside; other != nil {
		e.temporalAddress, e.temporalUI, e.server = other.temporalAddress, other.temporalUI, other.server
		return nil
	}
	if e.options.TemporalServer {
		return e.startTemporalServer(ctx)
	}
	taken, err := freePorts.take(4)
	if err != nil {
		return err
	}
	port, ui, api, metrics := taken[0], taken[1], taken[2], taken[3]
	e.temporalAddress, e.temporalUI = address(port), "http://"+address(ui)
	args := []string{
		"server", "start-dev", "--ip", loopback, "--port", strconv.Itoa(port), "--ui-port", strconv.Itoa(ui),
		"--http-port", strconv.Itoa(api), "--metrics-port", strconv.Itoa(metrics),
		"--db-filename", e.temporalDB(), "--log-level", "warn", "--log-format", "json",
		// Measured: two to four times faster than the defaults.
		"--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=normal",
		"--dynamic-config-value", "matching.numTaskqueueReadPartitions=1",
		"--dynamic-config-value", "matching.numTaskqueueWritePartitions=1",
		// Namespaces take turns at a task queue: docs/temporal.md, Fairness.
		"--dynamic-config-value", "matching.useNewMatcher=true",
		"--dynamic-config-value", "matching.enableFairness=true",
		// As in production: what Temporal's SQL stores hold.
		"--dynamic-config-value", "limit.maxIDLength=255",
	}
	if n := e.options.SuggestContinueAsNew; n > 0 {
		args = append(args, "--dynamic-config-value", fmt.Sprintf("limit.historyCount.suggestContinueAsNew=%d", n))
	}
	server, err := e.launch(ctx, command{
		name: Temporal, kind: Temporal, path: e.bin[tools.Temporal], args: args,
		addresses: map[string]string{"frontend": address(port), "ui": address(ui), "metrics": address(metrics)},
		ready: func(ctx context.Context) error {
			return temporalReady(ctx, client.Options{HostPort: address(port), Namespace: temporalNamespace, Logger: QuietLogger()})
		},
		// It looks for free ports for its services inside, and lets go of them before it listens there.
		again: 2,
	})
	if err != nil {
		return err
	}
	store, err := grpc.NewClient(address(port), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("make a client for Temporal: %w", err)
	}
	go func() {
		defer func() { _ = store.Close() }()
		e.unstick(server, workflowservice.NewWorkflowServiceClient(store))
	}()
	return nil
}

const (
	askEvery = 5 * time.Second
	// stuckAnswers is how many answers in a row make it stuck: one may be about a query that was really interrupted.
	stuckAnswers = 3
)

// unstick restarts Temporal's development server when its database is stuck: on a starved machine SQLite may go on to interrupt
// every query after it has interrupted one. The data are in a file, Holdfast outlasts a restart, and nothing else would help.
func (e *Env) unstick(server *Process, temporal workflowservice.WorkflowServiceClient) {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for answers := 0; ; {
		select {
		case <-e.life.Done():
			return
		case <-ticker.C:
		}
		if !interrupted(e.life, temporal) {
			answers = 0
			continue
		}
		if answers++; answers < stuckAnswers {
			continue
		}
		answers = 0
		e.progress.say("%s answers only that its queries were interrupted: it is restarted", server.Name())
		if err := server.Restart(e.life); err != nil && e.life.Err() == nil {
			e.progress.say("restart %s: %v", server.Name(), err)
		}
	}
}

// interrupted reports whether the store says so. No answer, as from a server that is paused or stopped, is none.
func interrupted(ctx context.Context, temporal workflowservice.WorkflowServiceClient) bool {
	ctx, cancel := context.WithTimeout(ctx, askEvery)
	defer cancel()
	_, err := temporal.ListNamespaces(ctx, &workflowservice.ListNamespacesRequest{})
	return err != nil && strings.Contains(err.Error(), "interrupted (9)")
}

// temporalReady asks for a workflow that does not exist: the answer "not found" needs frontend, history service and store, which
// come up one after the other.
func temporalReady(ctx context.Context, options client.Options) error {
	c, err := client.DialContext(ctx, options)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.DescribeWorkflowExecution(ctx, "holdfast-env-readiness", "")
	var missing *serviceerror.NotFound
	if err == nil || errors.As(err, &missing) {
		return nil
	}
	return err
}

// QuietLogger keeps the SDK's log out of what a test or a benchmark prints.
func QuietLogger() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }
