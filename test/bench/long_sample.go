package main

import (
	"context"
	"time"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/env/temporalserver"
)

// saysEvery is how often the progress of a load is said.
const saysEvery = 30 * time.Second

// mark is what has been counted up to a time.
type mark struct {
	at                        time.Time
	created, settled, deleted int
	usage                     map[string]usage
	database                  databaseCount
	tables                    map[string]float64
	// frontend are the requests at Temporal's frontend by operations, worker and watchers theirs at the API server by HTTP methods.
	frontend, worker, watchers map[string]float64
}

// sampler takes the samples.
type sampler struct {
	rig      *rig
	load     steadyLoad
	database *temporalserver.Database
	report   *longReport
	first    mark
	last     mark
}

func (s *sampler) mark(ctx context.Context) (mark, error) {
	created, settled, deleted := s.rig.seen.counts()
	now, err := s.markTemporal(ctx, s.rig.names()...)
	if err != nil {
		return now, err
	}
	now.created, now.settled, now.deleted = created, settled, deleted
	if now.worker, err = s.rig.requestsOf(ctx, env.Worker); err != nil {
		return now, err
	}
	if now.watchers, err = s.rig.requestsOf(ctx, s.rig.watchers...); err != nil {
		return now, err
	}
	now.tables, err = largestTables(ctx, s.database)
	return now, err
}

// markTemporal is the part of mark that needs neither Holdfast nor Kubernetes, with the usage of these.
func (s *sampler) markTemporal(ctx context.Context, names ...string) (mark, error) {
	now := mark{at: time.Now()}
	var err error
	if now.usage, err = s.rig.usageByName(names...); err != nil {
		return now, err
	}
	if now.frontend, err = s.rig.frontendRequests(ctx); err != nil {
		return now, err
	}
	now.database, err = countDatabase(ctx, s.database)
	return now, err
}

func (s *sampler) countStatements(ctx context.Context) (err error) {
	if s.database = s.rig.stack.TemporalDatabase(); s.database != nil {
		_, err = s.database.Query(ctx, "temporal", "CREATE EXTENSION pg_stat_statements")
	}
	return err
}

// begin takes the sample of what is needed at rest.
func (s *sampler) begin(ctx context.Context) error {
	say("nothing for %s, then %.1f backups a second for %s", s.load.rest, s.load.perSecond, s.load.lasts)
	before, err := s.mark(ctx)
	if err != nil {
		return err
	}
	if !sleep(ctx, s.load.rest) {
		return ctx.Err()
	}
	if s.first, err = s.mark(ctx); err != nil {
		return err
	}
	s.last = s.first
	s.report.Rest, err = s.between(before, s.first)
	return err
}

// run takes a sample every now and then, as long as backups are created or deleted.
func (s *sampler) run(ctx context.Context) error {
	for end := s.first.at.Add(s.load.until()); s.last.at.Before(end); {
		next := s.last.at.Add(s.load.every)
		if end.Before(next) {
			next = end.Add(time.Second)
		}
		for time.Until(next) > 0 {
			if !sleep(ctx, min(time.Until(next), saysEvery)) {
				return ctx.Err()
			}
			s.say()
		}
		now, err := s.mark(ctx)
		if err != nil {
			return err
		}
		sample, err := s.between(s.last, now)
		if err != nil {
			return err
		}
		s.report.Samples, s.last = append(s.report.Samples, sample), now
		say("%.0f s: due to Velero Backup p95 %.0f ms, Velero's completion to status p95 %.0f ms, worker %.0f MiB",
			sample.UntilSeconds, sample.ToVeleroP95, sample.ToStatusP95, sample.MemoryMiB[env.Worker])
	}
	return nil
}

func (s *sampler) say() {
	created, settled, deleted := s.rig.seen.counts()
	say("%.0f s: %d created, %d settled, %d deleted", time.Since(s.first.at).Seconds(), created-s.first.created,
		settled-s.first.settled, deleted-s.first.deleted)
}

// end waits for what is under way, and reads what was left in Temporal. Plans go on.
func (s *sampler) end(ctx context.Context) error {
	now := s.last
	if !s.load.plans {
		if err := s.awaitEnd(ctx); err != nil {
			return err
		}
		var err error
		if now, err = s.mark(ctx); err != nil {
			return err
		}
	}
	var err error
	if s.report.Whole, err = s.between(s.first, now); err != nil {
		return err
	}
	say("reading how long the histories are")
	all := []*longSample{&s.report.Rest, &s.report.Whole}
	for i := range s.report.Samples {
		all = append(all, &s.report.Samples[i])
	}
	for _, sample := range all {
		until := s.first.at.Add(time.Duration(sample.UntilSeconds * float64(time.Second)))
		from := until.Add(-time.Duration(sample.Seconds * float64(time.Second)))
		if sample.Ended, err = s.rig.endedBetween(ctx, from, until); err != nil {
			return err
		}
	}
	return nil
}

func (s *sampler) awaitEnd(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, steadyEnd)
	defer cancel()
	wanted, counted := "backups are settled", func() int {
		_, settled, _ := s.rig.seen.counts()
		return settled - s.first.settled
	}
	if s.load.keep > 0 {
		wanted, counted = "backups are deleted", func() int {
			_, _, deleted := s.rig.seen.counts()
			return deleted - s.first.deleted
		}
	}
	return awaitCount(ctx, s.load.backups(), wanted, counted)
}

func (s *sampler) between(from, until mark) (longSample, error) {
	sample := longSample{
		UntilSeconds: until.at.Sub(s.first.at).Seconds(), Seconds: until.at.Sub(from.at).Seconds(),
		Created: until.created - from.created, Settled: until.settled - from.settled, Deleted: until.deleted - from.deleted,
		CPUSeconds: map[string]float64{}, Database: until.database.minus(from.database), TablesMiB: until.tables,
	}
	sample.FrontendByOperation, sample.FrontendRequests = added(from.frontend, until.frontend)
	sample.WorkerByMethod, sample.WorkerRequests = added(from.worker, until.worker)
	_, sample.WatcherRequests = added(from.watchers, until.watchers)
	var toVelero, toStatus []time.Duration
	for key, seen := range s.rig.seen.settledBetween(from.at, until.at) {
		created, completed := s.rig.velero.times(key)
		toVelero = append(toVelero, created.Sub(seen.begun))
		toStatus = append(toStatus, seen.settled.Sub(completed))
	}
	sample.ToVeleroP50, sample.ToVeleroP95 = inMillis(percentile(toVelero, 50)), inMillis(percentile(toVelero, 95))
	sample.ToStatusP50, sample.ToStatusP95 = inMillis(percentile(toStatus, 50)), inMillis(percentile(toStatus, 95))
	sample.ToStatusMax = inMillis(percentile(toStatus, 100))
	for name, used := range until.usage {
		sample.CPUSeconds[name] = used.CPUSeconds - from.usage[name].CPUSeconds
	}
	var err error
	sample.MemoryMiB, err = s.rig.memory()
	return sample, err
}
