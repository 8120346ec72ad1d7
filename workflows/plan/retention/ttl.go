package retention

import "time"

const (
	day = 24 * time.Hour
	// margin is how long runs may fail before a backup expires at Velero that a rule still wants.
	margin = 7 * day
)

// Wanted is how long a rule wants a backup at most, if all runs are good.
type Wanted struct {
	Rule string
	For  time.Duration
}

// Lifetimes returns for how long each rule wants a backup, of a plan whose due times are at most gap apart. Spans without a
// backup do not count, so that a rule for hours keeps as many days of a plan that runs once a day.
func (k Keep) Lifetimes(gap time.Duration) []Wanted {
	var wanted []Wanted
	for _, r := range []struct {
		rule  string
		count int
		span  time.Duration
	}{
		{"last", k.Last, 0},
		{"hourly", k.Hourly, time.Hour},
		{"daily", k.Daily, day},
		{"weekly", k.Weekly, 7 * day},
		{"monthly", k.Monthly, 31 * day},
		{"yearly", k.Yearly, 366 * day},
	} {
		if r.count > 0 {
			wanted = append(wanted, Wanted{r.rule, times(r.count, max(r.span, gap))})
		}
	}
	return wanted
}

// forever is longer than any store lasts, and short enough to be added to.
const forever = 200 * 366 * day

func times(count int, span time.Duration) time.Duration {
	if span > forever/time.Duration(count) {
		return forever
	}
	return time.Duration(count) * span
}

// TTL is the time to live that every rule needs, with a margin for runs that fail; 0 without a rule.
func (k Keep) TTL(gap time.Duration) time.Duration {
	var longest time.Duration
	for _, wanted := range k.Lifetimes(gap) {
		longest = max(longest, wanted.For+gap+margin)
	}
	return longest
}

// Unkept returns the rules that want a backup for longer than it lives.
func (k Keep) Unkept(gap, ttl time.Duration) []string {
	var rules []string
	for _, wanted := range k.Lifetimes(gap) {
		if wanted.For > ttl {
			rules = append(rules, wanted.Rule)
		}
	}
	return rules
}
