package tools

import (
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fdb/gather"
	"holdfast.dev/holdfast/activities/fdb/jobs"
	"holdfast.dev/holdfast/activities/fdbtool"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
)

const (
	// maxFDBContainers is how many containers are described: the newest, and one of the others, so that data which somebody has
	// deleted are missed one day.
	maxFDBContainers = 8
	// maxFDBTags is how many tags are queried: the spec's and the newest.
	maxFDBTags = 16
	// healthyLag is how far a backup that makes progress may be behind: it writes its log every 20 s.
	healthyLag = 2 * time.Minute
)

// fdbTag is a tag that can be queried. We did not write any others in the status.
var fdbTag = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Inspect queries the database for the state of the object's tags and, with Deep, the store for the contents of its containers.
func (t *Tools) Inspect(ctx context.Context, in contract.FDBInspect) (seen contract.FDBInspection, err error) {
	defer activities.Beating(ctx)()
	reach, trouble, err := t.reach(ctx, in.Ref)
	defer reach.close(&err)
	if err != nil || reach == nil || trouble != nil {
		return contract.FDBInspection{Failure: trouble}, err
	}
	for _, tag := range tagsOf(reach.Objects) {
		status, trouble := reach.status(ctx, tag)
		if ctx.Err() != nil {
			return contract.FDBInspection{}, ctx.Err() // the worker stops, so the database may be well
		}
		if trouble != nil {
			return contract.FDBInspection{Failure: trouble}, nil
		}
		found := status.Tag
		found.Tag = tag
		if ails(found, time.Now()) {
			found.Errors = reach.errors(ctx, tag)
		}
		seen.AgentsPaused = status.AgentsPaused
		seen.Tags = append(seen.Tags, found)
	}
	if in.Deep && t.describes.Begin(in.Ref.Namespace, Describing) {
		defer t.describes.End(in.Ref.Namespace)
		limited, cancel := Reserve(ctx)
		defer cancel()
		seen.Containers = reach.containers(limited, containersOf(reach.Objects, seen.Tags))
	}
	return seen, ctx.Err()
}

// tagsOf returns the tags of the spec and of status.backups, sorted by name.
func tagsOf(objects *gather.Objects) []string {
	tags := []string{objects.Desired().Tag}
	for _, entry := range slices.Backward(objects.Object.Status.Backups) {
		if len(tags) < maxFDBTags && fdbTag.MatchString(entry.Tag) && !slices.Contains(tags, entry.Tag) {
			tags = append(tags, entry.Tag)
		}
	}
	slices.Sort(tags)
	return tags
}

// ails reports whether a tag's backup may have errors: it runs and lags. Only the text form of the status shows them.
func ails(tag contract.FDBTag, now time.Time) bool {
	if !tag.Running {
		return false
	}
	if tag.State != fdb.StateRunningDifferentially || tag.Latest == nil || tag.Latest.Time == 0 {
		return true
	}
	return now.Sub(time.Unix(tag.Latest.Time, 0)) > healthyLag
}

// errors returns the recent ones of a tag's backup. If they cannot be read that is no failure: the state is known.
func (r *reach) errors(ctx context.Context, tag string) []string {
	output, trouble := r.Run(ctx, fdbtool.Status, r.method.Status(tag, false))
	if trouble != nil {
		return nil
	}
	found := fdb.RecentErrors(output)
	for i, text := range found {
		found[i] = r.Redact(text)
	}
	return found
}

// containersOf returns the URLs of the containers to describe, the oldest first. Those that a turn of the queue may delete are
// left out: nothing changes there any more, and they were described when their backups had ended.
func containersOf(objects *gather.Objects, tags []contract.FDBTag) []string {
	var urls []string
	add := func(url string) {
		known := slices.ContainsFunc(urls, func(other string) bool { return fdbbackup.SamePlace(other, url) })
		if url != "" && !known {
			urls = append(urls, url)
		}
	}
	deletable := jobs.Deletable(objects, time.Now().Unix())
	for _, entry := range objects.Object.Status.Backups {
		if !slices.ContainsFunc(deletable, func(place contract.FDBPlace) bool { return fdbbackup.SamePlace(place.URL, entry.URL) }) {
			add(entry.URL)
		}
	}
	for _, tag := range tags {
		if tag.Running {
			add(tag.URL)
		}
	}
	if older := len(urls) - (maxFDBContainers - 1); older > 1 {
		urls[older-1] = urls[rand.IntN(older)]
		return urls[older-1:]
	}
	return urls
}

// containers describes containers, the newest first: the older ones get the time that is left.
func (r *reach) containers(ctx context.Context, urls []string) []contract.FDBContainer {
	described := make([]contract.FDBContainer, 0, len(urls))
	for _, url := range slices.Backward(urls) {
		described = append(described, r.container(ctx, url))
	}
	slices.Reverse(described)
	return described
}

func (r *reach) container(ctx context.Context, url string) contract.FDBContainer {
	output, trouble := r.describe(ctx, fdbtool.Describe, url)
	if trouble != nil && trouble.Class == contract.FDBClassMissing {
		return contract.FDBContainer{URL: url, Missing: true}
	}
	if trouble != nil {
		return contract.FDBContainer{URL: url, Failure: trouble}
	}
	container, err := fdb.ParseDescription(output)
	if err != nil {
		return contract.FDBContainer{URL: url, Failure: OtherFailure("%s", r.Redact(err.Error()))}
	}
	container.URL = url
	return container
}

// describe describes a container, if the object's credentials have its account. Without the account there would be no answer, and
// another tenant's store would be queried.
func (r *reach) describe(ctx context.Context, operation fdbtool.Operation, url string) ([]byte, *contract.FDBFailure) {
	if r.store != nil {
		return nil, r.store
	}
	if trouble := r.CheckURL(url); trouble != nil {
		return nil, trouble
	}
	if place, err := fdb.ParseURL(url); err == nil {
		if lacking := fdb.Lacking(r.Accounts, place); lacking != "" {
			return nil, &contract.FDBFailure{
				Class: contract.FDBClassDenied, Message: fdb.Bound("the credentials file "+lacking, MaxFDBMessage),
			}
		}
	}
	return r.Run(ctx, operation, r.method.Describe(url, operation != fdbtool.Probe))
}
