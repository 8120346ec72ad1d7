package restore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fdb/tools"
	"holdfast.dev/holdfast/activities/fdbtool"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/workflows/contract"
)

// Inspect queries the destination for the state of the restore and of the database. With Resolve, it also finds out what would be
// restored and whether the key ranges are empty. It changes nothing.
func (t *Tools) Inspect(
	ctx context.Context, in contract.FDBRestoreInspect,
) (seen contract.FDBRestoreInspection, err error) {
	defer activities.Beating(ctx)()
	reach, trouble, err := t.reach(ctx, in.Ref)
	defer reach.Done(&err)
	if err != nil || reach == nil || trouble != nil {
		return contract.FDBRestoreInspection{Failure: trouble}, err
	}
	if plan := reach.Object.Status.Plan; plan != nil {
		if seen.Restore, trouble = reach.Status(ctx, plan.Tag); trouble != nil {
			return contract.FDBRestoreInspection{Failure: trouble}, ctx.Err()
		}
	}
	database, trouble := reach.Database(ctx)
	if trouble != nil {
		return contract.FDBRestoreInspection{Failure: trouble}, ctx.Err() // a worker that stops says nothing about the database
	}
	seen.LockUID, seen.LockKnown = database.LockUID, database.LockKnown
	seen.AgentsPaused, seen.Agents = database.Paused, database.Agents
	if !in.Resolve {
		return seen, ctx.Err()
	}
	limited, cancel := tools.Reserve(ctx)
	defer cancel()
	if database.LockUID == "" { // a locked database does not answer
		seen.NotEmpty, trouble = reach.occupied(limited)
	}
	seen.URL = reach.URL
	if trouble != nil {
		seen.Unresolved = trouble
	} else {
		seen.Point, seen.Unresolved, err = t.resolve(limited, reach)
	}
	return seen, errors.Join(err, ctx.Err())
}

// Everything is the range that is restored without key ranges, as an argument of fdbcli; the tool checks the system's keys
// itself.
const Everything = `"" \xff`

// occupied returns the first range to be restored that holds data; empty if none does. It ends at the first failure.
func (r *Reach) occupied(ctx context.Context) (string, *contract.FDBFailure) {
	ranges := r.KeyRanges()
	if len(ranges) == 0 {
		some, trouble := r.Holds(ctx, Everything)
		if some {
			return "its keys", trouble
		}
		return "", trouble
	}
	for _, keys := range ranges {
		if some, trouble := r.Holds(ctx, fdb.RangeArgument(keys)); some || trouble != nil {
			return keys, trouble
		}
	}
	return "", nil
}

// Holds reports whether a range holds data.
func (r *Reach) Holds(ctx context.Context, keys string) (bool, *contract.FDBFailure) {
	args := append([]string{"--exec", "getrangekeys " + keys + " 1"}, AnswerLimit...)
	output, trouble := r.Run(ctx, fdbtool.RangeKeys, args)
	if trouble != nil {
		return false, trouble
	}
	some, err := restoretool.ParseRangeKeys(output)
	if err != nil {
		return false, tools.OtherFailure("%s", err)
	}
	return some, nil
}

// resolve finds out which version would be restored.
func (t *Tools) resolve(
	ctx context.Context, reach *Reach,
) (point *contract.FDBPoint, unresolved *contract.FDBFailure, err error) {
	if trouble := reach.unready(); trouble != nil {
		return nil, trouble, nil
	}
	if !t.describes.Begin(reach.Object.Namespace, tools.Describing) {
		return nil, tools.OtherFailure("this worker already describes as many containers as it may: this is retried"), nil
	}
	defer t.describes.End(reach.Object.Namespace)
	source, trouble, err := reach.OpenSource(ctx)
	if source != nil {
		defer func() { err = errors.Join(err, source.Close()) }()
	}
	if err != nil {
		return nil, nil, err
	}
	byTime := reach.View().Plan == nil && reach.View().Timestamp != 0
	if trouble != nil && byTime {
		return nil, trouble, nil
	}
	container, trouble := reach.contents(ctx, source)
	if trouble != nil {
		return nil, trouble, nil
	}
	if byTime {
		point, unresolved = reach.atTime(ctx, source, container)
		return point, unresolved, nil
	}
	point, unresolved = reach.atVersion(container)
	return point, unresolved, nil
}

// OpenSource opens a session for the cluster that was backed up, if it answers. It is needed only to find a version by its time.
func (r *Reach) OpenSource(ctx context.Context) (*fdbtool.Session, *contract.FDBFailure, error) {
	if !r.Source.Reachable() {
		return nil, tools.OtherFailure("the source cluster cannot be reached"), nil
	}
	session, trouble, err := r.open(ctx, r.Source)
	if err != nil || trouble != nil {
		return nil, trouble, err
	}
	if _, trouble := databaseStatus(ctx, session); trouble != nil {
		return nil, &contract.FDBFailure{
			Class: trouble.Class, Message: fdb.Bound("the source cluster: "+trouble.Message, tools.MaxFDBMessage),
		}, session.Close()
	}
	return session, nil, nil
}

// contents describes the container; with the times of versions if the source cluster answers.
func (r *Reach) contents(ctx context.Context, source *fdbtool.Session) (contract.FDBContainer, *contract.FDBFailure) {
	session, operation := r.Session, fdbtool.Contents
	if source != nil {
		session, operation = source, fdbtool.Describe
	}
	output, trouble := tools.RunTool(ctx, session, operation, r.method.Describe(r.URL, source != nil))
	if trouble != nil {
		return contract.FDBContainer{}, trouble
	}
	container, err := fdb.ParseDescription(output)
	switch {
	case err != nil:
		return container, tools.OtherFailure("%s", r.Redact(err.Error()))
	case !container.Restorable || container.Oldest == nil || container.Latest == nil:
		return container, notRestorable("nothing can be restored from the backup yet: its first snapshot is not complete")
	}
	return container, nil
}

// atVersion returns the version of the plan or of the spec, or else the latest.
func (r *Reach) atVersion(container contract.FDBContainer) (*contract.FDBPoint, *contract.FDBFailure) {
	view := r.View()
	point := contract.FDBPoint{Version: view.Wanted}
	if view.Plan != nil {
		point = contract.FDBPoint{Version: view.Plan.Version, Time: view.Plan.Time}
	}
	if point.Version == 0 {
		return container.Latest, nil
	}
	if trouble := within(container, point.Version, fmt.Sprintf("version %d", point.Version)); trouble != nil {
		return nil, trouble
	}
	return &point, nil
}

// toolTime is the tools' format of a time.
const toolTime = "2006/01/02.15:04:05-0700"

// atTime returns the version that the source cluster had at the time of the spec, as the tool computes it.
func (r *Reach) atTime(
	ctx context.Context, source *fdbtool.Session, container contract.FDBContainer,
) (*contract.FDBPoint, *contract.FDBFailure) {
	at := time.Unix(r.View().Timestamp, 0).UTC()
	what := "spec.timestamp " + at.Format(time.RFC3339)
	if at.After(time.Now()) {
		return nil, notRestorable("%s is in the future: the backup reaches from %s to %s", what, pointText(container.Oldest),
			pointText(container.Latest))
	}
	args := []string{"start", "-n", "-r", fdb.CleanURL(r.URL), "-t", Tag(r.Object), "--timestamp", at.Format(toolTime)}
	for _, keys := range r.KeyRanges() {
		args = append(args, "-k", fdb.RangeArgument(keys))
	}
	output, trouble := tools.RunTool(ctx, source, fdbtool.RestoreVersion, args)
	version, err := restoretool.ParseResolved(output)
	if err == nil {
		what = fmt.Sprintf("%s, which is version %d,", what, version)
	}
	switch {
	case trouble != nil && trouble.Class == contract.FDBClassNotRestorable && err == nil:
		return nil, refused(container, version, what)
	case trouble != nil && trouble.Class == contract.FDBClassNotRestorable:
		return nil, outside(container, what)
	case trouble != nil:
		return nil, trouble
	case err != nil:
		return nil, tools.OtherFailure("%s", err)
	}
	if trouble := within(container, version, what); trouble != nil {
		return nil, trouble
	}
	return &contract.FDBPoint{Version: version, Time: at.Unix()}, nil
}
