package gate

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"text/tabwriter"
)

// rate is how often a test function failed first.
type rate struct {
	name        string
	failed, ran int
	first, last string // commits
	// low and high are the failures in the runs of the lower and of the higher half of the loads.
	low, high       int
	ranLow, ranHigh int
}

// Rates prints how often each test function has failed, with the bounds of the rate at 95 %, where it failed first and last, and
// how the rate depends on the load: one that jumps at a commit is the product's fault, one that rises with the load the test's.
func Rates(out io.Writer, runs []Run) {
	rates := ratesOf(runs)
	if len(rates) == 0 {
		fmt.Fprintf(out, "No test has failed in %d runs on this machine.\n", len(runs))
		return
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TEST\tFAILED\tRATE (95 %)\tFIRST\tLAST\tAT LOW LOAD\tAT HIGH LOAD")
	for _, r := range rates {
		low, high := Bounds(r.failed, r.ran)
		fmt.Fprintf(table, "%s\t%d of %d\t%.0f to %.0f %%\t%.9s\t%.9s\t%d of %d\t%d of %d\n", r.name, r.failed, r.ran,
			100*low, 100*high, r.first, r.last, r.low, r.ranLow, r.high, r.ranHigh)
	}
	_ = table.Flush()
}

func ratesOf(runs []Run) []*rate {
	var loads []float64
	for _, run := range runs {
		loads = append(loads, run.Load)
	}
	slices.Sort(loads)
	found := map[Entry]*rate{}
	for _, run := range runs {
		for _, entry := range run.Failed {
			key := Entry{Package: entry.Package, Test: Function(entry.Test)}
			if found[key] == nil {
				found[key] = &rate{name: key.name()}
			}
		}
	}
	for key, r := range found {
		for _, run := range runs {
			if _, ran := run.Seconds[key.Package]; ran {
				r.count(run, slices.ContainsFunc(run.Failed, func(entry Entry) bool {
					return entry.Package == key.Package && Function(entry.Test) == key.Test
				}), run.Load > loads[(len(loads)-1)/2])
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *rate) int {
		return cmp.Or(cmp.Compare(b.failed, a.failed), cmp.Compare(a.name, b.name))
	})
}

func (r *rate) count(run Run, failed, busy bool) {
	r.ran++
	if busy {
		r.ranHigh++
	} else {
		r.ranLow++
	}
	if !failed {
		return
	}
	r.failed++
	r.last = run.Commit
	if r.first == "" {
		r.first = run.Commit
	}
	if busy {
		r.high++
	} else {
		r.low++
	}
}

// Bounds are those of a rate at 95 % (Wilson's score interval).
func Bounds(failed, ran int) (low, high float64) {
	if ran == 0 {
		return 0, 1
	}
	const z = 1.96
	n, p := float64(ran), float64(failed)/float64(ran)
	centre, spread := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, (centre-spread)/(1+z*z/n)), min(1, (centre+spread)/(1+z*z/n))
}
