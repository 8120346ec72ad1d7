package env

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"holdfast.dev/holdfast/test/tools"
)

// temporalNamespace is the namespace that the dev server makes.
const temporalNamespace = "default"

func (e *Env) temporalDB() string { return e.path("data", "temporal.db") }

func (e *Env) startTemporal(ctx context.Context) error {
	if e.without(Temporal) {
		return nil
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
	}
	if n := e.options.SuggestContinueAsNew; n > 0 {
		args = append(args, "--dynamic-config-value", fmt.Sprintf("limit.historyCount.suggestContinueAsNew=%d", n))
	}
	_, err = e.launch(ctx, command{
		name: Temporal, kind: Temporal, path: e.bin[tools.Temporal], args: args,
		addresses: map[string]string{"frontend": address(port), "ui": address(ui), "metrics": address(metrics)},
		ready:     func(ctx context.Context) error { return temporalReady(ctx, address(port)) },
		// It looks for free ports for its services inside, and lets go of them before it listens there.
		again: 2,
	})
	return err
}

// temporalReady asks for a workflow that does not exist: the answer "not found" needs frontend, history service and store, which
// come up one after the other.
func temporalReady(ctx context.Context, hostPort string) error {
	c, err := client.DialContext(ctx, client.Options{
		HostPort: hostPort, Namespace: temporalNamespace,
		Logger: QuietLogger(),
	})
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
