package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"holdfast.dev/holdfast/test/env"
)

const (
	// openPatience is how long the plans may take until they are ready. None is due so soon.
	openPatience = time.Hour
	openDue      = 12 * time.Hour
)

// openReport is about plans that are made, and not due: what each takes until it is ready, and what it adds to memory then.
type openReport struct {
	Plans      int                `json:"plans"`
	CPUMs      map[string]float64 `json:"cpuMsPerPlan"`
	MemoryKiB  map[string]float64 `json:"memoryKiBPerPlan"`
	Statements float64            `json:"statementsPerPlan"`
	// DatabaseBytes are those by which Temporal's database grows, with the plan's Schedule.
	DatabaseBytes float64 `json:"databaseBytesPerPlan"`
}

// settleTime is what Temporal is given to end what Holdfast's processes have begun.
const settleTime = 5 * time.Second

// alone measures what Temporal needs at rest without Holdfast, whose processes it stops.
func (s *sampler) alone(ctx context.Context) error {
	say("Temporal without Holdfast for %s", s.load.rest)
	for _, name := range append([]string{env.Worker}, s.rig.watchers...) {
		if err := s.rig.stack.Component(name).Stop(); err != nil {
			return err
		}
	}
	if !sleep(ctx, settleTime) {
		return ctx.Err()
	}
	before, err := s.markTemporal(ctx, s.rig.temporalNames()...)
	if err != nil {
		return err
	}
	if !sleep(ctx, s.load.rest) {
		return ctx.Err()
	}
	after, err := s.markTemporal(ctx, s.rig.temporalNames()...)
	if err != nil {
		return err
	}
	alone := &longSample{
		Seconds: after.at.Sub(before.at).Seconds(), CPUSeconds: map[string]float64{}, Database: after.database.minus(before.database),
	}
	for name, used := range after.usage {
		alone.CPUSeconds[name] = used.CPUSeconds - before.usage[name].CPUSeconds
	}
	_, alone.FrontendRequests = added(before.frontend, after.frontend)
	s.report.Alone = alone
	return nil
}

// open makes the plans that are not due, and returns when they are ready.
func (s *sampler) open(ctx context.Context) error {
	if s.load.open == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	plans, err := startPlanObserver(ctx, s.rig.client)
	if err != nil {
		return err
	}
	before, err := s.mark(ctx)
	if err != nil {
		return err
	}
	memory, err := s.rig.memory()
	if err != nil {
		return err
	}
	say("making %d plans that are not due", s.load.open)
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	schedule := dailyAt(time.Now().Add(openDue).UTC())
	for i := range s.load.open {
		key := types.NamespacedName{Namespace: namespaceName(i % s.load.namespaces), Name: fmt.Sprintf("open-%05d", i)}
		group.Go(func() error { return s.rig.client.Create(creating, newPlan(key, schedule, "")) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := awaitCount(ctx, s.load.open, "plans are ready", plans.ready); err != nil {
		return err
	}
	after, err := s.mark(ctx)
	if err != nil {
		return err
	}
	made, err := s.between(before, after)
	if err != nil {
		return err
	}
	s.report.Open = newOpenReport(s.load.open, made, memory)
	return nil
}

func newOpenReport(plans int, made longSample, memoryBefore map[string]float64) *openReport {
	each := float64(plans)
	report := &openReport{
		Plans: plans, CPUMs: map[string]float64{}, MemoryKiB: map[string]float64{},
		Statements: made.Database.Statements / each, DatabaseBytes: made.Database.Bytes / each,
	}
	for name, seconds := range made.CPUSeconds {
		report.CPUMs[name] = seconds * 1000 / each
		report.MemoryKiB[name] = (made.MemoryMiB[name] - memoryBefore[name]) * 1024 / each
	}
	return report
}

func (o *openReport) print(out io.Writer) {
	if o == nil {
		return
	}
	fmt.Fprintf(out, "\n%d plans that are not due: what each took until it was ready, and added to memory by then\n\n", o.Plans)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tCPU ms\tKiB\t")
	for _, name := range namesIn(o.CPUMs) {
		fmt.Fprintf(table, "%s\t%.1f\t%.1f\t\n", name, o.CPUMs[name], o.MemoryKiB[name])
	}
	_ = table.Flush() // the terminal
	if o.Statements > 0 {
		fmt.Fprintf(out, "\nGrowth of Temporal's database: %.0f bytes each; SQL statements: %.1f.\n", o.DatabaseBytes, o.Statements)
	}
}
