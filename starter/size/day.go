package size

import (
	"context"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/starter/size/simulate"
)

// The stages of a run, as they are shown.
const (
	stageBegin    = "due to Velero Backup"
	stageVelero   = "Velero Backup to its completion"
	stageEnd      = "Velero's completion to status"
	stageDeletion = "deletion by retention"
)

// Day is what a simulated day came to.
type Day struct {
	Runs       int `json:"runs"`
	Unfinished int `json:"unfinished"`
	// AllDone is when the last was finished, since the first was due.
	AllDone  metav1.Duration `json:"allDone"`
	Stages   []Stage         `json:"stages"`
	Stations []Station       `json:"stations"`
}

// Stage is how long one part of a run took.
type Stage struct {
	Name string          `json:"name"`
	P50  metav1.Duration `json:"p50"`
	P95  metav1.Duration `json:"p95"`
	Max  metav1.Duration `json:"max"`
}

// Station is how much of something was in use over the day, and how many runs waited for it at most; of what each cluster has, in
// the cluster with the most.
type Station struct {
	Name       string  `json:"name"`
	Servers    int     `json:"servers"`
	Use        float64 `json:"use"`
	MaxWaiting int     `json:"maxWaiting"`
}

// Simulate follows the runs of one day, and what is left of them for another, through a fleet that has what the estimate says.
func Simulate(ctx context.Context, estimate *Estimate, progress func(now time.Duration)) (*Day, error) {
	system, names := fleet(estimate)
	result, err := simulate.Run(ctx, system, 1, func(now float64) {
		if progress != nil {
			progress(seconds(now))
		}
	})
	if err != nil {
		return nil, err
	}
	done := &Day{Runs: result.Finished + result.Unfinished, Unfinished: result.Unfinished, AllDone: shown(result.LastFinished)}
	for _, name := range []string{stageBegin, stageVelero, stageEnd, stageDeletion} {
		if took := result.Stages[name]; took != nil {
			done.Stages = append(done.Stages, Stage{
				Name: name, P50: shown(took.Percentile(50)), P95: shown(took.Percentile(95)), Max: shown(took.Max()),
			})
		}
	}
	for _, name := range names {
		busiest := Station{Name: name}
		for i, station := range result.Stations {
			if station.Name != name {
				continue
			}
			busiest.Servers = system.Stations[i].Servers
			busiest.Use = max(busiest.Use, station.BusySeconds/day.Seconds()/float64(busiest.Servers))
			busiest.MaxWaiting = max(busiest.MaxWaiting, station.MaxWaiting)
		}
		done.Stations = append(done.Stations, busiest)
	}
	return done, nil
}

func shown(number float64) metav1.Duration { return metav1.Duration{Duration: seconds(number)} }

func seconds(number float64) time.Duration { return time.Duration(number * float64(time.Second)) }

// fleet is the system that an estimate describes, and the names of its stations.
func fleet(e *Estimate) (simulate.System, []string) {
	system := simulate.System{
		Stations: []simulate.Station{
			{Name: "Temporal's Schedules", Servers: 1},
			{Name: "the database's transactions", Servers: 1},
			{Name: "cores of Temporal and its database", Servers: whole(e.Temporal.Cores + e.Temporal.DatabaseCores)},
		},
		Until: 2 * day.Seconds(),
	}
	own := []simulate.Station{
		{Name: "cores of the workers", Servers: whole(e.Cluster.Worker.Cores)},
		{Name: "cores of API server and etcd", Servers: whole(e.Cluster.APIServerCores + e.Cluster.EtcdCores)},
		{Name: "Velero's backups at a time", Servers: e.Load.ConcurrentBackups},
		{Name: "Velero's deletions", Servers: 1},
	}
	var names []string
	for _, station := range append(system.Stations, own...) {
		names = append(names, station.Name)
	}
	plans := int(e.Load.plans())
	for cluster := range e.Load.Clusters {
		first := len(system.Stations)
		system.Stations = append(system.Stations, own...)
		mine := plans / e.Load.Clusters
		if cluster < plans%e.Load.Clusters {
			mine++
		}
		system.Groups = append(system.Groups, simulate.Group{Arrivals: dueTimes(e.Load, mine), Visits: visits(e.Load, first)})
	}
	return system, names
}

func whole(cores float64) int { return max(1, int(math.Ceil(cores))) }

// dueTimes are those of a day. Of a fraction of a run a day, that part of the plans is due.
func dueTimes(load Load, plans int) []simulate.Arrivals {
	var all []simulate.Arrivals
	for i := range int(math.Ceil(load.RunsPerDay)) {
		begin := float64(i) * day.Seconds() / load.RunsPerDay
		due := math.Round(float64(plans) * min(1, load.RunsPerDay-float64(i)))
		all = append(all, simulate.Arrivals{Begin: begin, End: begin + load.Spread.Seconds(), Jobs: int(due)})
	}
	return all
}

// visits are those of a run in the cluster whose first station this is: a half of what Holdfast does is before Velero's part.
func visits(load Load, first int) []simulate.Visit {
	half := runIn(load).plus(ofBackup).times(0.5)
	worker, apiServer, velero, deletions := first, first+1, first+2, first+3
	holdfast := func(needs Needs, urgent bool, ends string) []simulate.Visit {
		return []simulate.Visit{
			{Station: 1, Seconds: needs[Transactions] / load.TransactionsPerSecond, Urgent: urgent},
			{Station: 2, Seconds: needs[TemporalCPU] + needs[DatabaseCPU], Urgent: urgent},
			{Station: worker, Seconds: needs[WorkerCPU], Urgent: urgent},
			{Station: apiServer, Seconds: needs[APIServerCPU] + needs[EtcdCPU], Urgent: urgent, Ends: ends},
		}
	}
	all := []simulate.Visit{{Station: 0, Seconds: 1 / load.ScheduleStarts, Fixed: true}}
	all = append(all, holdfast(half, false, stageBegin)...)
	all = append(all, simulate.Visit{Station: velero, Seconds: load.BackupTakes.Seconds(), Ends: stageVelero})
	all = append(all, holdfast(half, true, stageEnd)...)
	all = append(all, holdfast(ofDeletion, false, "")...)
	return append(all, simulate.Visit{Station: deletions, Seconds: load.DeletionTakes.Seconds(), Ends: stageDeletion})
}
