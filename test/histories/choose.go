package histories

import (
	"cmp"
	"slices"
)

// Choose returns the histories that together have what all of them have, per workflow type: every rare event, and as many paths
// as the limit, in bytes, allows. What brings most for its size goes first.
func Choose(all []Recorded, limit int64) []Recorded {
	has := make([][]string, len(all))
	for i, recorded := range all {
		has[i] = recorded.has()
	}
	var chosen []Recorded
	known, used := map[string]bool{}, make([]bool, len(all))
	for {
		best, most := -1, 0.0
		for i, recorded := range all {
			if used[i] || recorded.Size > limit {
				continue
			}
			if gain := float64(count(has[i], known)) / float64(recorded.Size); gain > most {
				best, most = i, gain
			}
		}
		if best < 0 {
			break
		}
		used[best] = true
		limit -= all[best].Size
		chosen = append(chosen, all[best])
		for _, each := range has[best] {
			known[each] = true
		}
	}
	slices.SortFunc(chosen, func(a, b Recorded) int { return cmp.Compare(a.Path, b.Path) })
	return chosen
}

// rareWeight is how many paths a rare event is worth.
const rareWeight = 20

// has lists what the history has, with its workflow type; a rare event several times.
func (r Recorded) has() []string {
	var has []string
	for path := range r.Paths() {
		has = append(has, r.Type()+": "+path)
	}
	for rare, is := range r.Rare() {
		for range rareWeight {
			if is {
				has = append(has, r.Type()+": "+string(rare))
			}
		}
	}
	return has
}

func count(has []string, known map[string]bool) (unknown int) {
	for _, each := range has {
		if !known[each] {
			unknown++
		}
	}
	return unknown
}
