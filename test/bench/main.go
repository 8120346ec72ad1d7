// Bench measures what a NonAdminBackup costs and how long it takes, on the real etcd, API server and Temporal. A stand-in
// for Velero completes every Backup at once, so that only Holdfast's own cost is seen.
//
// What the queue of expirations costs is measured without a stack: its code runs in time that is skipped.
//
// Every burst has a stack of its own. The numbers to compare from run to run, and from machine to machine, are the counts
// and ratios: writes, events and CPU time per backup. Seconds and rates depend on what else the machine does.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	sizes := flag.String("sizes", "50,200,1000", "sizes of the bursts; empty for none")
	namespaces := flag.Int("namespaces", 20, "namespaces that a burst is spread over")
	settled := flag.Int("settled", 10_000, "settled backups over which the watcher is restarted; 0 for none")
	expiries := flag.Int("expiries", 1000, "FoundationDB backups in the queue of expirations; 0 for none")
	output := flag.String("json", "bench.json", "file for the numbers")
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, plan{*sizes, *namespaces, *settled, *expiries}, *output)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// report is what bench prints, and writes as JSON.
type report struct {
	Lone     *loneReport    `json:"lone,omitempty"`
	Bursts   []*burstReport `json:"bursts,omitempty"`
	Restart  *restartReport `json:"restart,omitempty"`
	Expiries *expiryReport  `json:"expiries,omitempty"`
}

// plan is what is measured.
type plan struct {
	sizes                         string
	namespaces, settled, expiries int
}

func run(ctx context.Context, of plan, output string) error {
	bursts, err := parseSizes(of.sizes)
	if err != nil {
		return err
	}
	namespaces, settled := of.namespaces, of.settled
	if namespaces < 1 || settled < 0 || of.expiries < 0 {
		return fmt.Errorf("-namespaces: want at least 1; -settled and -expiries: want at least 0")
	}
	var all report
	if of.expiries > 0 {
		say("a round of %d backups in the queue of expirations", of.expiries)
		if all.Expiries, err = measureExpiry(of.expiries); err != nil {
			return fmt.Errorf("queue of expirations: %w", err)
		}
	}
	for _, size := range bursts {
		say("burst of %d over %d namespaces", size, namespaces)
		burst, lone, err := measureBurst(ctx, size, namespaces)
		if err != nil {
			return fmt.Errorf("burst of %d: %w", size, err)
		}
		all.Bursts = append(all.Bursts, burst)
		if all.Lone == nil {
			all.Lone = lone
		}
	}
	if settled > 0 {
		say("restart of the watcher over %d settled backups", settled)
		if all.Restart, err = measureRestart(ctx, settled, namespaces); err != nil {
			return fmt.Errorf("restart: %w", err)
		}
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(output, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("-json: %w", err)
	}
	all.print(os.Stdout)
	say("the same as JSON: %s", output)
	return nil
}

func parseSizes(text string) ([]int, error) {
	var sizes []int
	if text == "" {
		return sizes, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		size, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || size < 1 {
			return nil, fmt.Errorf("-sizes: want numbers above 0, separated by commas, not %q", text)
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

func say(format string, args ...any) { fmt.Printf("== "+format+"\n", args...) }
