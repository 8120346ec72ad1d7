package simulate

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"slices"
)

// progressEvery is after how many events progress is reported, and the context checked.
const progressEvery = 1 << 20

// Run simulates the system. progress, which may be nil, is called now and then with the simulated time.
func Run(ctx context.Context, system System, seed uint64, progress func(now float64)) (*Result, error) {
	s := &simulation{
		System: system, random: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // a simulation, which is to be repeatable
		stations: make([]station, len(system.Stations)), arriving: make([]arriving, len(system.Groups)),
		result: Result{Stages: map[string]*Spread{}, Stations: make([]StationResult, len(system.Stations))},
	}
	for i, group := range system.Groups {
		s.arriving[i].left = slices.Clone(group.Arrivals)
		s.arrival(int32(i))
	}
	for count := 0; len(s.events) > 0 && s.events[0].at <= system.Until; count++ {
		if count%progressEvery == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if progress != nil {
				progress(s.now)
			}
		}
		next := heap.Pop(&s.events).(event)
		s.now = next.at
		if next.of == arrival {
			s.enter(job{group: next.number, due: s.now, stage: s.now})
			s.arrival(next.number)
			continue
		}
		s.leave(next.number)
	}
	return s.end(), nil
}

// job is on its way: visits before visit are over. The stage that it is in began at stage.
type job struct {
	due, stage float64
	group      int32
	visit      int32
}

// event is the arrival of a group's next job, or the end of the service of the job with this number.
type event struct {
	at     float64
	of     kind
	number int32
}

type kind int8

const (
	arrival kind = iota
	served
)

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

type station struct {
	busy            int
	urgent, waiting fifo
}

type simulation struct {
	System
	random   *rand.Rand
	now      float64
	events   events
	stations []station
	arriving []arriving
	// serving are the jobs that are served, by number; free are numbers that nobody has.
	serving []job
	free    []int32
	result  Result
}

// arrival has the group's next job arrive.
func (s *simulation) arrival(group int32) {
	if at, more := s.arriving[group].next(s.random); more {
		heap.Push(&s.events, event{at: at, of: arrival, number: group})
	}
}

// enter takes a job to its next visit, or to its end.
func (s *simulation) enter(j job) {
	visits := s.Groups[j.group].Visits
	if int(j.visit) == len(visits) {
		s.result.Finished++
		s.result.LastFinished = s.now
		return
	}
	visit := visits[j.visit]
	at := &s.stations[visit.Station]
	if at.busy < s.Stations[visit.Station].Servers {
		s.serve(j, visit)
		return
	}
	queue := &at.waiting
	if visit.Urgent {
		queue = &at.urgent
	}
	queue.push(j)
	result := &s.result.Stations[visit.Station]
	result.MaxWaiting = max(result.MaxWaiting, at.urgent.len()+at.waiting.len())
}

func (s *simulation) serve(j job, visit Visit) {
	s.stations[visit.Station].busy++
	var number int32
	if last := len(s.free) - 1; last >= 0 {
		number, s.free = s.free[last], s.free[:last]
		s.serving[number] = j
	} else {
		number = int32(len(s.serving))
		s.serving = append(s.serving, j)
	}
	takes := visit.service(s.random)
	s.result.Stations[visit.Station].BusySeconds += takes
	heap.Push(&s.events, event{at: s.now + takes, of: served, number: number})
}

// leave ends the service of a job, and begins that of the next.
func (s *simulation) leave(number int32) {
	j := s.serving[number]
	s.free = append(s.free, number)
	visit := s.Groups[j.group].Visits[j.visit]
	at := &s.stations[visit.Station]
	at.busy--
	if visit.Ends != "" {
		s.result.stage(visit.Ends).add(s.now - j.stage)
		j.stage = s.now
	}
	j.visit++
	next, found := at.urgent.pop()
	if !found {
		next, found = at.waiting.pop()
	}
	if found {
		s.serve(next, s.Groups[next.group].Visits[next.visit])
	}
	s.enter(j)
}

func (s *simulation) end() *Result {
	for i := range s.stations {
		s.result.Stations[i].Name = s.Stations[i].Name
		s.result.Unfinished += s.stations[i].busy + s.stations[i].urgent.len() + s.stations[i].waiting.len()
	}
	return &s.result
}

// fifo is a queue that gives back the memory of those who have left.
type fifo struct {
	jobs []job
	head int
}

func (f *fifo) len() int { return len(f.jobs) - f.head }

func (f *fifo) push(j job) { f.jobs = append(f.jobs, j) }

func (f *fifo) pop() (job, bool) {
	if f.len() == 0 {
		return job{}, false
	}
	j := f.jobs[f.head]
	if f.head++; f.head > len(f.jobs)/2 {
		f.jobs = f.jobs[:copy(f.jobs, f.jobs[f.head:])]
		f.head = 0
	}
	return j, true
}
