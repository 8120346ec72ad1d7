package retention_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/plan/retention"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse("2006-01-02 15:04 -0700", text)
	require.NoError(t, err)
	return moment
}

func names(list []retention.Named) []string {
	var names []string
	for _, named := range list {
		names = append(names, named.Name)
	}
	return names
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	location, err := time.LoadLocation(name)
	require.NoError(t, err)
	return location
}

// Each example is a table of good backups by their begin; what is kept by which rule stands beside it.
func TestWorkedExamples(t *testing.T) {
	tests := map[string]struct {
		keep    retention.Keep
		zone    string
		backups []string          // begin
		want    map[string]string // by begin
	}{
		"the last two": {
			retention.Keep{Last: 2},
			"UTC",
			[]string{"2026-11-20 02:00 +0000", "2026-11-21 02:00 +0000", "2026-11-22 02:00 +0000"},
			map[string]string{"2026-11-22 02:00 +0000": "last", "2026-11-21 02:00 +0000": "last"},
		},
		"the newest of a day, and days without one do not count": {
			retention.Keep{Daily: 2},
			"UTC",
			[]string{"2026-11-10 02:00 +0000", "2026-11-12 02:00 +0000", "2026-11-20 01:00 +0000", "2026-11-20 13:00 +0000"},
			map[string]string{"2026-11-20 13:00 +0000": "daily", "2026-11-12 02:00 +0000": "daily"},
		},
		"a day is one of the plan's zone": {
			retention.Keep{Daily: 2},
			"America/New_York",
			[]string{"2026-11-20 03:00 +0000", "2026-11-20 04:59 +0000", "2026-11-20 05:00 +0000"},
			map[string]string{"2026-11-20 05:00 +0000": "daily", "2026-11-20 04:59 +0000": "daily"},
		},
		"autumn's repeated hour is two hours and one day": {
			retention.Keep{Hourly: 3, Daily: 1},
			"Europe/Berlin",
			[]string{"2026-10-25 01:30 +0200", "2026-10-25 02:30 +0200", "2026-10-25 02:30 +0100", "2026-10-25 03:30 +0100"},
			map[string]string{
				"2026-10-25 03:30 +0100": "hourly, daily", "2026-10-25 02:30 +0100": "hourly", "2026-10-25 02:30 +0200": "hourly",
			},
		},
		"spring's day has 23 hours and is one day": {
			retention.Keep{Daily: 2},
			"Europe/Berlin",
			[]string{"2026-03-28 23:30 +0100", "2026-03-29 00:30 +0100", "2026-03-29 23:30 +0200"},
			map[string]string{"2026-03-29 23:30 +0200": "daily", "2026-03-28 23:30 +0100": "daily"},
		},
		"a week is one of ISO 8601: that of New Year has days of both years": {
			retention.Keep{Weekly: 2},
			"UTC",
			[]string{"2026-12-27 12:00 +0000", "2026-12-28 12:00 +0000", "2027-01-03 12:00 +0000"},
			map[string]string{"2027-01-03 12:00 +0000": "weekly", "2026-12-27 12:00 +0000": "weekly"},
		},
		"a year ends in the plan's zone": {
			retention.Keep{Monthly: 2, Yearly: 2},
			"Pacific/Auckland",
			[]string{"2026-12-31 10:59 +0000", "2026-12-31 11:00 +0000"},
			map[string]string{"2026-12-31 11:00 +0000": "monthly, yearly", "2026-12-31 10:59 +0000": "monthly, yearly"},
		},
		"grandfather, father, son": {
			retention.Keep{Last: 1, Daily: 2, Monthly: 2, MinGood: 1},
			"UTC",
			[]string{"2026-09-30 02:00 +0000", "2026-10-30 02:00 +0000", "2026-10-31 02:00 +0000", "2026-11-01 02:00 +0000"},
			map[string]string{
				"2026-11-01 02:00 +0000": "last, daily, monthly, minGood", "2026-10-31 02:00 +0000": "daily, monthly",
			},
		},
		"no rule: one good stays": {
			retention.Keep{MinGood: 1},
			"UTC",
			[]string{"2026-11-20 02:00 +0000", "2026-11-21 02:00 +0000"},
			map[string]string{"2026-11-21 02:00 +0000": "minGood"},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			var backups []retention.Backup
			for _, begin := range test.backups {
				backups = append(backups, retention.Backup{Name: begin, State: retention.Good, Begin: at(t, begin)})
			}
			v := retention.Decide(test.keep, zone(t, test.zone), backups, at(t, "2027-06-01 00:00 +0000"), time.Time{})
			got := map[string]string{}
			for _, kept := range v.Kept {
				got[kept.Name] = kept.Why
			}
			assert.Equal(t, test.want, got)
			assert.Empty(t, v.Blocked)
			assert.Len(t, v.Due, len(test.backups)-len(test.want))
			assert.True(t, slices.IsSortedFunc(v.Due, func(a, b retention.Named) int { return at(t, a.Name).Compare(at(t, b.Name)) }),
				"oldest first")
		})
	}
}

func TestWhatIsNeverDeleted(t *testing.T) {
	begin := at(t, "2026-11-20 02:00 +0000")
	backups := []retention.Backup{
		{Name: "runs", State: retention.Unfinished, Begin: begin},
		{Name: "held", State: retention.Failed, Begin: begin, Held: true},
		{Name: "restored", State: retention.Good, Begin: begin, Used: "NonAdminRestore undo"},
		{Name: "old", State: retention.Good, Begin: begin.Add(time.Hour)},
		{Name: "newest", State: retention.Good, Begin: begin.Add(2 * time.Hour)},
		{Name: "failed-1", State: retention.Failed, Begin: begin.Add(3 * time.Hour)},
		{Name: "failed-2", State: retention.Failed, Begin: begin.Add(4 * time.Hour)},
		{Name: "failed-3", State: retention.Failed, Begin: begin.Add(5 * time.Hour)},
	}
	keep := retention.Keep{MinGood: 1, Failed: 2}
	v := retention.Decide(keep, time.UTC, backups, begin.Add(day), begin.Add(time.Hour))
	assert.Equal(t, retention.Verdict{
		Kept: []retention.Named{
			{Name: "failed-3", Why: "failed"},
			{Name: "failed-2", Why: "failed"},
			{Name: "newest", Why: "minGood"},
			{Name: "runs", Why: "unfinished"},
			{Name: "held", Why: "hold"},
		},
		Due: []retention.Named{
			{Name: "old", Why: "no rule of keep names it"}, {Name: "failed-1", Why: "failed, and not among the newest 2"},
		},
		Blocked: []retention.Named{{Name: "restored", Why: "used by NonAdminRestore undo"}},
		MinGood: []string{"newest"},
	}, v)
	for title, now := range map[string]time.Time{
		"behind the last judgement": begin.Add(day - time.Second), "behind a backup's begin": begin.Add(4 * time.Hour),
	} {
		v := retention.Decide(keep, time.UTC, backups, now, begin.Add(day))
		assert.Empty(t, v.Due, title)
		assert.Equal(t, []string{"restored", "old", "failed-1"}, names(v.Blocked), title)
		assert.Contains(t, v.Blocked[1].Why, "the clock is behind", title)
	}
}

// Another rule that names a backup as well does not stop its expiration at Velero.
func TestMinGoodIsSaidBesideOtherRules(t *testing.T) {
	begin := at(t, "2026-11-20 02:00 +0000")
	backups := []retention.Backup{
		{Name: "old", State: retention.Good, Begin: begin}, {Name: "new", State: retention.Good, Begin: begin.Add(day)},
	}
	v := retention.Decide(retention.Keep{Last: 3, MinGood: 1}, time.UTC, backups, begin.Add(40*day), begin)
	assert.Equal(t, []string{"new"}, v.MinGood)
}

// Backups that hold far less than those before them do not take their place: minGood keeps the newest that does not, beside the
// newest.
func TestWhatHoldsFarLessMakesNothingElseGo(t *testing.T) {
	begin := at(t, "2026-11-20 02:00 +0000")
	backups := []retention.Backup{
		{Name: "older", State: retention.Good, Begin: begin, Usual: true},
		{Name: "full", State: retention.Good, Begin: begin.Add(day), Usual: true},
	}
	for night := range 10 {
		backups = append(backups, retention.Backup{
			Name: fmt.Sprint("empty-", night), State: retention.Good, Begin: begin.Add(time.Duration(2+night) * day),
		})
	}
	v := retention.Decide(retention.Keep{Last: 3, MinGood: 1}, time.UTC, backups, begin.Add(40*day), begin)
	assert.Equal(t, []retention.Named{
		{Name: "empty-9", Why: "last, minGood"},
		{Name: "empty-8", Why: "last"},
		{Name: "empty-7", Why: "last"},
		{Name: "full", Why: "minGood"},
	}, v.Kept)
	assert.Equal(t, []string{"empty-9", "full"}, v.MinGood, "nor does it expire at Velero")
	assert.Equal(t, "older", v.Due[0].Name)
}

func TestTimesToLive(t *testing.T) {
	tests := []struct {
		keep      retention.Keep
		gap       time.Duration
		want      time.Duration
		unkept    []string // with 30 days
		explained string
	}{
		{retention.Keep{Last: 3}, day, 4*day + 7*day, nil, "three days and the next one"},
		{retention.Keep{Hourly: 24}, time.Hour, 25*time.Hour + 7*day, nil, ""},
		{retention.Keep{Hourly: 48}, day, 49*day + 7*day, []string{"hourly"}, "hours without a backup do not count"},
		{retention.Keep{Daily: 7, Weekly: 4, Monthly: 12}, day, 12*31*day + day + 7*day, []string{"monthly"}, ""},
		{retention.Keep{Yearly: 7}, day, 7*366*day + day + 7*day, []string{"yearly"}, "regulated"},
		{retention.Keep{MinGood: 3, Failed: 3}, day, 0, nil, "Velero's own time to live does"},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.keep), func(t *testing.T) {
			assert.Equal(t, test.want, test.keep.TTL(test.gap), test.explained)
			assert.Equal(t, test.unkept, test.keep.Unkept(test.gap, 30*day))
			assert.Empty(t, test.keep.Unkept(test.gap, test.keep.TTL(test.gap)))
		})
	}
}

const day = 24 * time.Hour
