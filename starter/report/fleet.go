package report

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/starter/velero"
)

// readWithin is how long one of several clusters may take: one that is away does not keep the others' report back.
const readWithin = 2 * time.Minute

// Fleet is the report of several clusters.
type Fleet struct {
	From     time.Time       `json:"from"`
	Until    time.Time       `json:"until"`
	Clusters []ClusterReport `json:"clusters"`
}

// ClusterReport is one of a Fleet's: Report is nil if the cluster could not be read, and Problem says why.
type ClusterReport struct {
	Cluster string  `json:"cluster"`
	Problem string  `json:"problem,omitempty"`
	Report  *Report `json:"report,omitempty"`
}

// Source is a cluster that is to be read.
type Source struct {
	Name  string
	Open  func() (client.Client, error)
	Scope velero.QuotaScope
	// Within is how long it may take; two minutes if zero.
	Within time.Duration
}

// ReadFleet makes the report of all sources, which are read at the same time, in their order.
func ReadFleet(ctx context.Context, sources []Source, since time.Duration, now time.Time) *Fleet {
	fleet := &Fleet{
		From: now.UTC().Add(-since).Truncate(time.Second), Until: now.UTC().Truncate(time.Second),
		Clusters: make([]ClusterReport, len(sources)),
	}
	var group sync.WaitGroup
	for i, source := range sources {
		group.Go(func() { fleet.Clusters[i] = source.reportInTime(ctx, since, now) })
	}
	group.Wait()
	return fleet
}

// Report reads the cluster and makes its report.
func (s Source) Report(ctx context.Context, since time.Duration, now time.Time) (*Report, error) {
	reader, err := s.Open()
	if err != nil {
		return nil, err
	}
	objects, err := Read(ctx, reader, s.Name, s.Scope)
	if err != nil {
		return nil, err
	}
	return Make(objects, since, now), nil
}

// reportInTime is Report of one of several clusters.
func (s Source) reportInTime(ctx context.Context, since time.Duration, now time.Time) ClusterReport {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.Within, readWithin))
	defer cancel()
	made := make(chan ClusterReport, 1)
	go func() { // discovery takes no context
		of := ClusterReport{Cluster: s.Name}
		report, err := s.Report(ctx, since, now)
		if of.Report = report; err != nil {
			of.Problem = err.Error()
		}
		made <- of
	}()
	select {
	case of := <-made:
		return of
	case <-ctx.Done():
		return ClusterReport{Cluster: s.Name, Problem: "its API server does not answer: " + ctx.Err().Error()}
	}
}

// Err says which clusters could not be read.
func (f *Fleet) Err() error {
	var missing []string
	for _, cluster := range f.Clusters {
		if cluster.Report == nil {
			missing = append(missing, cluster.Cluster+": "+cluster.Problem)
		}
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("%d of %d clusters are not in the report: %s", len(missing), len(f.Clusters), strings.Join(missing, "; "))
}

// Title names it.
func (f *Fleet) Title() string {
	return fmt.Sprintf("Backups of %d clusters, %s to %s",
		len(f.Clusters), f.From.Format(time.DateOnly), f.Until.Format(time.DateOnly))
}

// Write writes the report in one of Formats.
func (f *Fleet) Write(out io.Writer, format string) error { return write(out, format, "fleet", f) }
