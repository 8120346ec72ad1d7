package histories

import (
	"cmp"
	"slices"
)

// Choose returns the histories that together have what all of them have, per workflow type: every rare event, and then as many
// paths as the limit, in bytes, allows. What brings most for its size goes first.
func Choose(all []Recorded, limit int64) []Recorded {
	var chosen []Recorded
	used := make([]bool, len(all))
	for _, what := range []func(Recorded) []string{Recorded.rares, Recorded.paths} {
		has, known := make([][]string, len(all)), map[string]bool{}
		learn := func(i int) {
			for _, each := range has[i] {
				known[each] = true
			}
		}
		for i, recorded := range all {
			if has[i] = what(recorded); used[i] {
				learn(i)
			}
		}
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
			learn(best)
		}
	}
	slices.SortFunc(chosen, func(a, b Recorded) int { return cmp.Compare(a.Path, b.Path) })
	return chosen
}

// rares and paths list what the history has, with its workflow type.
func (r Recorded) rares() (has []string) {
	for rare, is := range r.Rare() {
		if is {
			has = append(has, r.Type()+": "+string(rare))
		}
	}
	return has
}

func (r Recorded) paths() (has []string) {
	for path := range r.Paths() {
		has = append(has, r.Type()+": "+path)
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
