// Bench measures what a NonAdminBackup costs and how long it takes, on the real etcd, API server and Temporal. A stand-in
// for Velero completes every Backup at once, so that only Holdfast's own cost is seen.
//
// What the queue of expirations costs is measured without a stack: its code runs in time that is skipped.
//
// Profile hostile measures no cost but the watchers' memory: over thousands of backups, and some that were made to be large.
// Profile big does so over a hundred thousand settled backups of ten thousand tenants, and counts what is requested while nothing
// happens. Profile plans measures how late the runs of thousands of plans are that are due in the same minute. Profile steps
// compares a workflow of one step with an activity without a workflow.
//
// Profile long creates backups for an hour, as many a second as a million a day are, and deletes each after a while. Profile
// restores restores a backup of each namespace many times at once. Profile turns measures turns of the queue before Velero while
// thousands wait there. Profile baseline measures workflows that do nothing.
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
	var of plan
	flag.StringVar(&of.profile, "profile", profileCosts, "what is measured: "+profiles)
	flag.StringVar(&of.sizes, "sizes", "50,200,1000", "sizes of the bursts; empty for none")
	flag.StringVar(&of.watchers, "watchers", "2", "watchers that run during a burst; several numbers for a column each")
	flag.StringVar(&of.maxActive, "max-active", "0",
		"queue.maxActive of the policy during a burst; several numbers for a column each; 0 is no queue before Velero")
	flag.IntVar(&of.busy, "busy", 0, "busy loops that compete for the CPU during a burst")
	flag.IntVar(&of.namespaces, "namespaces", 20, "namespaces that a burst is spread over")
	flag.IntVar(&of.settled, "settled", 10_000, "settled backups over which the watcher is restarted; 0 for none")
	flag.IntVar(&of.expiries, "expiries", 1000, "FoundationDB backups in the queue of expirations; 0 for none")
	of.hostile.hostileFlags()
	of.big.bigFlags()
	flag.IntVar(&of.plans.plans, "plans", 10_000, "profile plans: plans that are due in the same minute")
	flag.IntVar(&of.plans.watchers, "plans-watchers", 2, "profile plans: watchers")
	flag.StringVar(&of.plans.jitter, "plans-jitter", "", "profile plans: jitter of each plan; empty for the default")
	flag.DurationVar(&of.plans.ahead, "plans-ahead", 0,
		"profile plans: how long after the first is made they are due; 0 for a second for each 8, and a minute")
	flag.BoolVar(&of.plans.unchanged, "plans-unchanged", false,
		"profile plans: restart over plans that nothing happens to: they are due half a day later")
	of.long.flags()
	of.restores.flags()
	of.turns.flags()
	of.baseline.flags()
	flag.IntVar(&of.steps.steps, "steps", 300, "profile steps: steps of a round, in each way")
	flag.IntVar(&of.steps.rounds, "steps-rounds", 3, "profile steps: rounds")
	output := flag.String("json", "bench.json", "file for the numbers")
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, of, *output)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// Profiles, for flag -profile.
const (
	profileCosts   = "costs"
	profileHostile = "hostile"
	profileBig     = "big"
	profilePlans   = "plans"
	profileSteps   = "steps"
	profileLong    = "long"
	profileRestore = "restores"
	profileTurns   = "turns"
	profileBase    = "baseline"
)

var profiles = strings.Join([]string{
	profileCosts, profileHostile, profileBig, profilePlans, profileSteps, profileLong, profileRestore,
	profileTurns,
}, ", ") + " or " + profileBase

// report is what bench prints, and writes as JSON.
type report struct {
	Lone *loneReport `json:"lone,omitempty"`
	// LoneInTurn is with the queue before Velero.
	LoneInTurn *loneReport     `json:"loneInTurn,omitempty"`
	Bursts     []*burstReport  `json:"bursts,omitempty"`
	Restart    *restartReport  `json:"restart,omitempty"`
	Expiries   *expiryReport   `json:"expiries,omitempty"`
	Hostile    *crowdReport    `json:"hostile,omitempty"`
	Big        *crowdReport    `json:"big,omitempty"`
	Plans      *plansReport    `json:"plans,omitempty"`
	Steps      *stepsReport    `json:"steps,omitempty"`
	Long       *longReport     `json:"long,omitempty"`
	Restores   *restoresReport `json:"restores,omitempty"`
	Turns      turnsReports    `json:"turns,omitempty"`
	Baseline   *baselineReport `json:"baseline,omitempty"`
}

// plan is what is measured.
type plan struct {
	profile, sizes, watchers, maxActive string
	busy, namespaces, settled, expiries int
	hostile, big                        crowd
	plans                               planLoad
	steps                               stepsLoad
	long                                steadyLoad
	restores                            restoreLoad
	turns                               turnsFlags
	baseline                            baselineLoad
}

func (of plan) planLoad() planLoad {
	load := of.plans
	load.namespaces, load.observed = of.namespaces, untilReviewed
	return load
}

func run(ctx context.Context, of plan, output string) error {
	var all report
	var err error
	switch of.profile {
	case profileCosts:
		err = all.measureCosts(ctx, of)
	case profileHostile:
		all.Hostile, err = measureCrowd(ctx, of.hostile)
	case profileBig:
		all.Big, err = measureCrowd(ctx, of.big)
	case profilePlans:
		all.Plans, err = measurePlans(ctx, of.planLoad())
	case profileSteps:
		all.Steps, err = measureSteps(ctx, of.steps)
	case profileLong:
		of.long.namespaces = of.namespaces
		all.Long, err = measureLong(ctx, of.long)
	case profileRestore:
		of.restores.namespaces = of.namespaces
		all.Restores, err = measureRestores(ctx, of.restores)
	case profileTurns:
		of.turns.namespaces = of.namespaces
		all.Turns, err = measureTurns(ctx, of.turns)
	case profileBase:
		all.Baseline, err = measureBaseline(ctx, of.baseline)
	default:
		err = fmt.Errorf("-profile: must be %s, not %q", profiles, of.profile)
	}
	if err != nil {
		return err
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

func (r *report) measureCosts(ctx context.Context, of plan) error {
	sizes, err := parseNumbers("-sizes", of.sizes)
	if err != nil {
		return err
	}
	watchers, err := parseNumbers("-watchers", of.watchers)
	if err != nil {
		return err
	}
	limits, err := parseLimits(of.maxActive)
	if err != nil {
		return err
	}
	if of.namespaces < 1 || of.settled < 0 || of.expiries < 0 || of.busy < 0 {
		return fmt.Errorf("-namespaces: must be at least 1; -busy, -settled and -expiries: must be at least 0")
	}
	if of.expiries > 0 {
		say("a round of %d backups in the queue of expirations", of.expiries)
		if r.Expiries, err = measureExpiry(of.expiries); err != nil {
			return fmt.Errorf("queue of expirations: %w", err)
		}
	}
	for _, size := range sizes {
		for _, count := range watchers {
			for _, limit := range limits {
				burst := load{backups: size, namespaces: of.namespaces, watchers: count, busy: of.busy, maxActive: limit}
				if err := r.measureBurst(ctx, burst); err != nil {
					return err
				}
			}
		}
	}
	if of.settled > 0 {
		say("restart of the watcher over %d settled backups", of.settled)
		if r.Restart, err = measureRestart(ctx, of.settled, of.namespaces); err != nil {
			return fmt.Errorf("restart: %w", err)
		}
	}
	return nil
}

func (r *report) measureBurst(ctx context.Context, of load) error {
	say("burst of %d over %d namespaces, %d watchers, %d busy loops beside, at most %d active (0: no queue)",
		of.backups, of.namespaces, of.watchers, of.busy, of.maxActive)
	burst, lone, err := measureBurst(ctx, of)
	if err != nil {
		return fmt.Errorf("burst of %d: %w", of.backups, err)
	}
	r.Bursts = append(r.Bursts, burst)
	switch {
	case of.maxActive > 0 && r.LoneInTurn == nil:
		r.LoneInTurn = lone
	case of.maxActive == 0 && r.Lone == nil:
		r.Lone = lone
	}
	return nil
}

// parseNumbers reads the value of a flag.
func parseNumbers(name, text string) ([]int, error) {
	var numbers []int
	if text == "" {
		return numbers, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		number, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || number < 1 {
			return nil, fmt.Errorf("%s: must be numbers above 0, separated by commas, not %q", name, text)
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// parseLimits reads the value of -max-active, in which 0 may be.
func parseLimits(text string) ([]int, error) {
	if text == "" {
		return []int{0}, nil
	}
	var limits []int
	for part := range strings.SplitSeq(text, ",") {
		limit, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || limit < 0 {
			return nil, fmt.Errorf("-max-active: must be numbers of at least 0, separated by commas, not %q", text)
		}
		limits = append(limits, limit)
	}
	return limits, nil
}

func say(format string, args ...any) { fmt.Printf("== "+format+"\n", args...) }
