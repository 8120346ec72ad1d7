package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"

	"holdfast.dev/holdfast/test/env"
)

// measured are the processes whose cost is reported. That of all watchers together is the watcher's, that of the services of
// Temporal's own server with PostgreSQL is Temporal's.
var measured = []string{env.Worker, env.Watcher, env.Temporal, env.KubeAPIServer, env.Etcd}

// usage is what a process has used since its start.
type usage struct {
	CPUSeconds float64
	PeakMiB    float64
}

// processesOf are the processes whose cost is reported under a name.
func (r *rig) processesOf(name string) []string {
	switch {
	case name == env.Watcher:
		return r.watchers
	case name == env.Temporal && r.hasPostgres():
		return append(slices.Clone(env.TemporalServices), env.Postgres)
	}
	return []string{name}
}

func (r *rig) hasPostgres() bool { return r.stack.Component(env.Postgres) != nil }

// names are measured, and PostgreSQL once more by itself if there is one.
func (r *rig) names() []string {
	if r.hasPostgres() {
		return append(slices.Clone(measured), env.Postgres)
	}
	return measured
}

// temporalNames are those of names that are Temporal's.
func (r *rig) temporalNames() []string {
	if r.hasPostgres() {
		return []string{env.Temporal, env.Postgres}
	}
	return []string{env.Temporal}
}

// namesIn are measured, and PostgreSQL if it was measured too.
func namesIn(cpu map[string]float64) []string {
	if _, there := cpu[env.Postgres]; there {
		return append(slices.Clone(measured), env.Postgres)
	}
	return measured
}

func (r *rig) usage() (map[string]usage, error) { return r.usageByName(r.names()...) }

func (r *rig) usageByName(names ...string) (map[string]usage, error) {
	all := map[string]usage{}
	var err error
	for _, name := range names {
		if all[name], err = r.used(name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// used is the usage of the processes whose cost is reported under a name.
func (r *rig) used(name string) (all usage, err error) {
	for _, process := range r.processesOf(name) {
		used, err := usageWithChildren(r.stack.Component(process).PID())
		if err != nil {
			return all, fmt.Errorf("usage of %s: %w", process, err)
		}
		all = all.plus(used)
	}
	return all, nil
}

// usageWithChildren is the usage of a process and its children: PostgreSQL has one for each connection.
func usageWithChildren(pid int) (usage, error) {
	all, err := usageOf(pid)
	if err != nil {
		return all, err
	}
	children, err := childrenOf(pid)
	for _, child := range children {
		if used, err := usageOf(child); err == nil { // else it has ended
			all = all.plus(used)
		}
	}
	return all, err
}

func childrenOf(pid int) ([]int, error) {
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil, fmt.Errorf("children of process %d: %w", pid, err)
	}
	var children []int
	for _, child := range bytes.Fields(list) {
		id, err := strconv.Atoi(string(child))
		if err != nil {
			return nil, fmt.Errorf("children of process %d: %w", pid, err)
		}
		children = append(children, id)
	}
	return children, nil
}

// memory is what the processes have in memory now, in MiB. What several have in common counts once.
func (r *rig) memory() (map[string]float64, error) {
	all := map[string]float64{}
	for _, name := range r.names() {
		for _, process := range r.processesOf(name) {
			pid := r.stack.Component(process).PID()
			children, err := childrenOf(pid)
			if err != nil {
				return nil, err
			}
			for _, id := range append(children, pid) {
				rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", id))
				if err != nil && id == pid {
					return nil, fmt.Errorf("memory of %s: %w", process, err)
				}
				all[name] += proportional(rollup)
			}
		}
	}
	return all, nil
}

// proportional reads the proportional set size from /proc/PID/smaps_rollup, in MiB; zero if there is none: the process has ended.
func proportional(rollup []byte) float64 {
	for line := range bytes.Lines(rollup) {
		if value, found := bytes.CutPrefix(line, []byte("Pss:")); found {
			kib, _ := strconv.ParseFloat(string(bytes.Fields(value)[0]), 64)
			return kib / 1024
		}
	}
	return 0
}

// plus is what two processes have used: the CPU time of both, and the higher of their peaks.
func (u usage) plus(other usage) usage {
	return usage{CPUSeconds: u.CPUSeconds + other.CPUSeconds, PeakMiB: max(u.PeakMiB, other.PeakMiB)}
}

// ticksPerSecond is Linux' USER_HZ, the unit of CPU times in /proc.
const ticksPerSecond = 100

func usageOf(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, err
	}
	return parseUsage(stat, status)
}

// parseUsage reads utime and stime from /proc/PID/stat, both also of children that have ended, and VmHWM from /proc/PID/status;
// see proc(5).
func parseUsage(stat, status []byte) (usage, error) {
	end := bytes.LastIndexByte(stat, ')') // a name may hold spaces and parentheses
	fields := bytes.Fields(stat[end+1:])
	if end < 0 || len(fields) < 15 {
		return usage{}, fmt.Errorf("unknown form of stat: %q", stat)
	}
	var ticks float64
	for _, field := range fields[11:15] {
		value, err := strconv.ParseFloat(string(field), 64)
		if err != nil {
			return usage{}, fmt.Errorf("CPU time: %w", err)
		}
		ticks += value
	}
	for line := range bytes.Lines(status) {
		if value, found := bytes.CutPrefix(line, []byte("VmHWM:")); found {
			kib, err := strconv.ParseFloat(string(bytes.Fields(value)[0]), 64)
			return usage{CPUSeconds: ticks / ticksPerSecond, PeakMiB: kib / 1024}, err
		}
	}
	return usage{}, fmt.Errorf("no VmHWM in status")
}

// busyLoop keeps one core busy. It ends with its parent, however that ends.
const busyLoop = `while kill -0 $PPID; do :; done`

// startBusyLoops starts processes that compete for the CPU until stop is called.
func startBusyLoops(ctx context.Context, count int) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var loops []*exec.Cmd
	stop = func() {
		cancel()
		for _, loop := range loops {
			_ = loop.Wait() // killed
		}
	}
	for range count {
		loop := exec.CommandContext(ctx, "sh", "-c", busyLoop)
		if err := loop.Start(); err != nil {
			stop()
			return nil, fmt.Errorf("start a busy loop: %w", err)
		}
		loops = append(loops, loop)
	}
	return stop, nil
}
