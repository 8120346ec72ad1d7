package outage

import (
	"context"
	"fmt"
	"os"
	"slices"

	"holdfast.dev/holdfast/k8s/process/failpoint"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// Occurrences of a point that a matrix looks at: the later ones depend on how many phases of others were seen.
const Occurrences = 2

// Disturbance is the kill of a process at a moment; the zero value is none.
type Disturbance struct {
	Process string
	Moment  Moment
	// Away: the API server is, for the local form to fail, and the moment is in the regular form that follows.
	Away bool
}

// String returns the disturbance in words.
func (d Disturbance) String() string { return fmt.Sprintf("%s %s", d.Process, d.Moment) }

// Disturbances are all kills that an undisturbed run gives reason to. What has a local form runs in its regular one only when the
// API server does not answer the local one: in an undisturbed run by chance, on a busy machine.
func Disturbances(moments []Moment) []Disturbance {
	var all []Disturbance
	for _, m := range moments {
		byChance := m.Form == failpoint.Regular && slices.ContainsFunc(moments, func(other Moment) bool {
			return other.Form == failpoint.Local && other.Step == m.Step && other.Of == m.Of
		})
		if m.Occurrence > Occurrences || byChance {
			continue
		}
		for _, process := range killedAt(m) {
			if process != env.Temporal || m.Step != failpoint.Signal {
				all = append(all, Disturbance{Process: process, Moment: m})
			}
		}
		if m.Form == failpoint.Local && m.Occurrence == 1 && m.CallsAPIServer() {
			regular := m
			regular.Form = failpoint.Regular
			all = append(all, Disturbance{Process: env.Worker, Moment: regular, Away: true})
		}
	}
	return all
}

// killedAt are the processes that are killed at a moment. What is done with the namespace of a drill has a worker of its own.
func killedAt(m Moment) []string {
	all := []string{env.Worker, env.Watcher, env.Temporal}
	switch m.Step {
	case contract.PrepareDrillNamespace.Name, contract.StartDrillJob.Name, contract.RemoveDrillNamespace.Name:
		return append(all, env.DrillWorker)
	}
	return all
}

// Wanted are the disturbances of a scenario that make test has: its sample, and, where histories are recorded, those that are
// meant for that.
func Wanted(sample, recorded []string) []string {
	if os.Getenv("HOLDFAST_RECORD_HISTORIES") == "" {
		return sample
	}
	return slices.Concat(sample, recorded)
}

// Plan tells the driver what to do, and returns how many processes will be started again.
func (d Disturbance) Plan(ctx context.Context, s *Subjects) int {
	if d.Process == "" {
		return 0
	}
	process := s.Process(d.Process)
	kill := KillAndRestart(context.WithoutCancel(ctx), process, s.restarted)
	if !d.Away {
		s.Driver.At(d.Moment, kill)
		return 1
	}
	before := Moment{Point: failpoint.Point{Step: d.Moment.Step, Form: failpoint.Local, Of: d.Moment.Of}, Occurrence: 1}
	s.Driver.At(before, func() error { s.Proxy.Pause(); return nil })
	before.Form = failpoint.Regular
	resume := func() error { s.Proxy.Resume(); return nil }
	if d.Moment.After {
		s.Driver.At(before, resume)
		s.Driver.At(d.Moment, kill)
		return 1
	}
	s.Driver.At(before, func() error {
		if err := process.Kill(); err != nil {
			return err
		}
		s.Proxy.Resume()
		return kill()
	})
	return 1
}

// WithLastWords returns what was wanted if all that is missing of it is one write: the API server does not note as done what it
// was doing for a client when that was killed. If it was not done, the objects show that. Otherwise it returns what it got.
func WithLastWords(want, got []string) []string {
	missing := slices.Clone(want)
	for _, write := range got {
		at := slices.Index(missing, write)
		if at < 0 {
			return got
		}
		missing = slices.Delete(missing, at, at+1)
	}
	if len(missing) == 1 {
		return want
	}
	return got
}
