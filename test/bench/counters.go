package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/env/temporalserver"
)

// databaseCount is what PostgreSQL has counted for Temporal.
type databaseCount struct {
	// Bytes is the size of all databases, Histories of the histories alone, Log of what was written ahead.
	Bytes      float64 `json:"bytes"`
	Histories  float64 `json:"historyBytes"`
	Log        float64 `json:"writeAheadLogBytes"`
	Statements float64 `json:"statements"`
	// Transactions are those that wrote something: each waits for the disk.
	Transactions float64 `json:"writingTransactions"`
}

func (c databaseCount) minus(before databaseCount) databaseCount {
	return databaseCount{
		Bytes: c.Bytes - before.Bytes, Histories: c.Histories - before.Histories, Log: c.Log - before.Log,
		Statements: c.Statements - before.Statements, Transactions: c.Transactions - before.Transactions,
	}
}

// countDatabase returns what PostgreSQL has counted so far; zero without a database.
func countDatabase(ctx context.Context, database *temporalserver.Database) (databaseCount, error) {
	if database == nil {
		return databaseCount{}, nil
	}
	row, err := database.Query(ctx, "temporal", `SELECT
		(SELECT sum(pg_database_size(datname)) FROM pg_database WHERE datname LIKE 'temporal%'),
		pg_total_relation_size('history_node') + pg_total_relation_size('history_tree'),
		pg_current_wal_lsn() - '0/0'::pg_lsn,
		(SELECT sum(calls) FROM pg_stat_statements),
		pg_snapshot_xmax(pg_current_snapshot())`)
	if err != nil {
		return databaseCount{}, err
	}
	return readDatabaseCount(row)
}

func readDatabaseCount(row string) (databaseCount, error) {
	var count databaseCount
	into := []*float64{&count.Bytes, &count.Histories, &count.Log, &count.Statements, &count.Transactions}
	fields := strings.Split(row, "|")
	if len(fields) != len(into) {
		return count, fmt.Errorf("PostgreSQL's counts: must be %d, not %q", len(into), row)
	}
	for i, field := range fields {
		var err error
		if *into[i], err = strconv.ParseFloat(field, 64); err != nil {
			return count, fmt.Errorf("PostgreSQL's counts: %w", err)
		}
	}
	return count, nil
}

// largestTables returns the sizes of Temporal's largest tables with their indexes, in MiB; none without a database.
func largestTables(ctx context.Context, database *temporalserver.Database) (map[string]float64, error) {
	if database == nil {
		return nil, nil
	}
	sizes := map[string]float64{}
	for _, name := range []string{"temporal", "temporal_visibility"} {
		rows, err := database.Query(ctx, name, `SELECT relname, pg_total_relation_size(oid) FROM pg_class
			WHERE relkind = 'r' AND pg_total_relation_size(oid) > 1 << 20 ORDER BY 2 DESC LIMIT 5`)
		if err != nil {
			return nil, err
		}
		for row := range strings.Lines(rows) {
			table, size, _ := strings.Cut(strings.TrimSpace(row), "|")
			bytes, err := strconv.ParseFloat(size, 64)
			if err != nil {
				return nil, fmt.Errorf("size of table %s: %w", table, err)
			}
			sizes[table] = bytes / (1 << 20)
		}
	}
	return sizes, nil
}

// frontendRequests counts the requests that Temporal's frontend has had for a namespace other than its own, by operations.
func (r *rig) frontendRequests(ctx context.Context) (map[string]float64, error) {
	frontend := r.stack.Component(env.TemporalFrontend)
	if frontend == nil {
		frontend = r.stack.Component(env.Temporal) // the development server
	}
	page, err := env.ReadPage(ctx, "http://"+frontend.Address(env.AddressMetrics)+"/metrics")
	if err != nil {
		return nil, fmt.Errorf("metrics of Temporal's frontend: %w", err)
	}
	return sumCounter(string(page), "service_requests", "operation", func(labels string) bool {
		return strings.Contains(labels, `service_name="frontend"`) &&
			!strings.Contains(labels, `namespace="_unknown_"`) && !strings.Contains(labels, `namespace="temporal_system"`)
	})
}

// requestsOf counts what some of Holdfast's processes have requested of the API server, by HTTP methods. Watches are in it, and
// what comes by the clock.
func (r *rig) requestsOf(ctx context.Context, processes ...string) (map[string]float64, error) {
	all := map[string]float64{}
	for _, name := range processes {
		page, err := env.ReadPage(ctx, "http://"+r.stack.Component(name).Address(env.AddressMetrics)+"/metrics")
		if err != nil {
			return nil, fmt.Errorf("metrics of %s: %w", name, err)
		}
		counts, err := sumCounter(string(page), "rest_client_requests_total", "method", func(string) bool { return true })
		if err != nil {
			return nil, fmt.Errorf("metrics of %s: %w", name, err)
		}
		for method, count := range counts {
			all[method] += count
		}
	}
	return all, nil
}

// endedRuns adds up the histories of workflow runs that have ended.
type endedRuns struct {
	Runs   int   `json:"workflowRuns"`
	Events int64 `json:"historyEvents"`
	Bytes  int64 `json:"historyBytes"`
}

// endedBetween is about those that ended then, without the first moment, as far as visibility knows them.
func (r *rig) endedBetween(ctx context.Context, from, until time.Time) (endedRuns, error) {
	var ended endedRuns
	query := fmt.Sprintf("CloseTime > '%s' AND CloseTime <= '%s'",
		from.UTC().Format(time.RFC3339Nano), until.UTC().Format(time.RFC3339Nano))
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: 1000}
	for {
		page, err := r.temporal.ListWorkflow(ctx, request)
		if err != nil {
			return ended, fmt.Errorf("list the workflows that have ended: %w", err)
		}
		for _, run := range page.Executions {
			ended.Runs++
			ended.Events += run.HistoryLength
			ended.Bytes += run.HistorySizeBytes
		}
		if request.NextPageToken = page.NextPageToken; len(request.NextPageToken) == 0 {
			return ended, nil
		}
	}
}

// sumCounter adds up a counter of a page of metrics by the values of one of its labels, of all samples whose labels are wanted.
func sumCounter(page, name, by string, wanted func(labels string) bool) (map[string]float64, error) {
	label := regexp.MustCompile(`\b` + by + `="(\w+)"`)
	counts := map[string]float64{}
	for line := range strings.Lines(page) {
		labels, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if !strings.HasPrefix(labels, name+"{") || !wanted(labels) {
			continue
		}
		count, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		if found := label.FindStringSubmatch(labels); found != nil {
			counts[found[1]] += count
		}
	}
	return counts, nil
}

// added returns how much was added to each count, and in all.
func added(before, after map[string]float64) (each map[string]float64, all float64) {
	each = map[string]float64{}
	for name, count := range after {
		if more := count - before[name]; more > 0 {
			each[name] = more
			all += more
		}
	}
	return each, all
}

// written is how many of requests by HTTP methods write.
func written(byMethod map[string]float64) float64 {
	return byMethod["POST"] + byMethod["PUT"] + byMethod["PATCH"] + byMethod["DELETE"]
}
