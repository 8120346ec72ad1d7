// Package coordination_test shows the workflows that coordinate FoundationDB backups, and the activities that speak with them, on
// a real Temporal server. What they coordinate is stood in for by small workflows.
package coordination_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	patience = 2 * time.Minute
	// callPatience is how long one question to Temporal may take.
	callPatience = 20 * time.Second
	// rollEvery is after how many events a workflow continues as new.
	rollEvery = 60
	// heartbeat is after which silence an ask is tried again. Its owner may have continued as new meanwhile, and run the command twice: a
	// busy machine must not be that slow.
	heartbeat = 15 * time.Second
	// beats is how often activities say that they live, at most.
	beats = time.Second
)

var temporalClient client.Client

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("skipped: these tests start a Temporal server (-short)")
		os.Exit(0)
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	path, err := tools.Path(ctx, tools.Temporal)
	if err != nil {
		return 0, err
	}
	var attributes []temporal.SearchAttributeUpdate
	for _, name := range contract.SearchAttributeNames() {
		attributes = append(attributes, temporal.NewSearchAttributeKeyKeyword(name).ValueSet(""))
	}
	server, err := testsuite.StartDevServer(ctx, testsuite.DevServerOptions{
		ExistingPath: path, LogLevel: "never", SearchAttributes: temporal.NewSearchAttributes(attributes...),
		ClientOptions: &client.Options{Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))},
		ExtraArgs:     []string{"--dynamic-config-value", fmt.Sprintf("limit.historyCount.suggestContinueAsNew=%d", rollEvery)},
	})
	if err != nil {
		return 0, fmt.Errorf("start Temporal: %w", err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop Temporal:", err)
		}
	}()
	temporalClient = server.Client()
	return m.Run(), nil
}
