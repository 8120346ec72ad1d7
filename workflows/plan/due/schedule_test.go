package due_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast.dev/holdfast/workflows/plan/due"
	"holdfast.dev/holdfast/workflows/workflowtest/property"
)

func parse(t require.TestingT, schedule, zone string) due.Schedule {
	parsed, err := due.Parse(schedule, zone)
	require.NoError(t, err)
	return parsed
}

// Source of what 7 is: crontab(5). Kubernetes' CronJob and Velero's Schedule refuse it.
func TestSundayIsZeroAndSeven(t *testing.T) {
	from := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	for schedule, same := range map[string]string{
		"0 2 * * 7": "0 2 * * 0", "0 2 * * 5-7": "0 2 * * 5,6,0", "0 2 * * fri-7": "0 2 * * 5,6,0", "0 2 * * 0-7": "0 2 * * *",
		"0 2 * * 1,7": "0 2 * * 0,1", "0 2 * * 1-7/2": "0 2 * * 0,1,3,5", "0 2 * * 7-7": "0 2 * * 0", "0 2 * * 7/2": "0 2 * * 0",
	} {
		assert.Equal(t, parse(t, same, "").NextN(from, 20), parse(t, schedule, "").NextN(from, 20), schedule)
	}
	for _, schedule := range []string{"0 2 * * 8", "0 2 * * 7-8", "0 2 * * 7-3", "0 2 * * x-7", "0 2 * * 1-7/0", "0 2 * * 1-7/x", "0 2 7 13 *"} {
		_, err := due.Parse(schedule, "")
		require.Error(t, err, schedule)
	}
}

// As Kubernetes' CronJob and Velero's Schedule have it: with a step, a star is a restriction, and either day will do.
func TestTwoFieldsOfDays(t *testing.T) {
	from := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) // a Saturday
	for schedule, days := range map[string][]int{
		"0 2 * * 1":   {3, 10, 17},
		"0 2 */2 * *": {3, 5, 7},
		"0 2 */9 * 1": {3, 10, 17, 19},
		"0 2 15 * 1":  {3, 10, 15, 17},
		"0 2 * * */3": {2, 5, 8},
	} {
		var got []int
		for _, at := range parse(t, schedule, "").NextN(from, len(days)) {
			got = append(got, at.Day())
		}
		assert.Equal(t, days, got, schedule)
	}
}

func TestWhatIsDueOnTheDaysOnWhichTheClocksChange(t *testing.T) {
	const berlin, newYork, lordHowe, apia, kolkata = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kolkata"
	tests := map[string]struct {
		schedule, zone, after string
		want                  []string // in UTC
	}{
		"spring drops the hour: due as much later": {
			"30 2 * * *", berlin, "2026-03-28T00:00:00Z",
			[]string{"2026-03-28T01:30:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"},
		},
		"two times of the dropped hour stay two": {
			"0,30 2 * * *", berlin, "2026-03-29T00:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:00:00Z"},
		},
		"autumn repeats the hour: due at first": {
			"30 2 * * *", berlin, "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		},
		"between the two, it has been due": {
			"30 2 * * *", berlin, "2026-10-25T00:45:00Z",
			[]string{"2026-10-26T01:30:00Z"},
		},
		"every hour is due in every hour that passes, in autumn": {
			"0 * * * *", berlin, "2026-10-24T23:30:00Z",
			[]string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"},
		},
		"and in spring": {
			"@hourly", berlin, "2026-03-28T23:30:00Z",
			[]string{"2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"},
		},
		"several times of every hour stay in order": {
			"0,30 0-23 * * *", berlin, "2026-10-25T00:10:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"},
		},
		"every other hour is due once by the clock": {
			"0 */2 * * *", newYork, "2026-11-01T03:00:00Z",
			[]string{"2026-11-01T04:00:00Z", "2026-11-01T07:00:00Z", "2026-11-01T09:00:00Z"},
		},
		"half an hour is dropped": {
			"15 2 * * *", lordHowe, "2026-10-03T12:00:00Z",
			[]string{"2026-10-03T15:45:00Z", "2026-10-04T15:15:00Z"},
		},
		"a day is dropped: the next one stands for both": {
			"0 2 * * *", apia, "2011-12-29T00:00:00Z",
			[]string{"2011-12-29T12:00:00Z", "2011-12-30T12:00:00Z", "2011-12-31T12:00:00Z"},
		},
		"no change of clocks": {
			"0 2 * * *", kolkata, "2026-03-28T21:00:00Z",
			[]string{"2026-03-29T20:30:00Z", "2026-03-30T20:30:00Z"},
		},
		"UTC if no zone is named": {"@daily", "", "2026-03-28T21:00:00Z", []string{"2026-03-29T00:00:00Z"}},
		"weekly":                  {"@weekly", "", "2026-03-28T21:00:00Z", []string{"2026-03-29T00:00:00Z", "2026-04-05T00:00:00Z"}},
		"monthly":                 {"@monthly", "", "2026-12-28T21:00:00Z", []string{"2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z"}},
		"a leap day in eight years": {
			"0 0 29 2 *", "", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z", "2108-02-29T00:00:00Z"},
		},
		"a due time itself is not after itself": {"@daily", "", "2026-03-28T00:00:00Z", []string{"2026-03-29T00:00:00Z"}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			after, err := time.Parse(time.RFC3339, test.after)
			require.NoError(t, err)
			var got []string
			for _, at := range parse(t, test.schedule, test.zone).NextN(after, len(test.want)) {
				got = append(got, at.UTC().Format(time.RFC3339))
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// Ten years, in zones of every kind: a daily schedule is due exactly once on each day of the calendar there, and an hourly one in
// each hour that passes.
func TestNeitherTwiceNorNeverInTenYears(t *testing.T) {
	zones := []string{
		"UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/Sao_Paulo", "America/St_Johns", "Australia/Lord_Howe",
		"Africa/Casablanca", "Asia/Kolkata", "Asia/Gaza", "Pacific/Chatham", "Pacific/Auckland",
	}
	from, until := time.Date(2020, 1, 1, 12, 0, 0, 0, time.UTC), time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, zone := range zones {
		for _, hour := range []int{0, 1, 2, 3, 23} {
			t.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(zone, "/", "-"), hour), func(t *testing.T) {
				schedule := parse(t, fmt.Sprintf("30 %d * * *", hour), zone)
				location := schedule.Zone()
				times, more := schedule.Between(from, until, 5000)
				require.False(t, more)
				days := map[string]int{}
				for _, at := range times {
					days[at.In(location).Format(time.DateOnly)]++
				}
				for day := from.Add(24 * time.Hour); day.Before(until.Add(-24 * time.Hour)); day = day.Add(24 * time.Hour) {
					require.Equal(t, 1, days[day.In(location).Format(time.DateOnly)], day.In(location))
				}
			})
		}
		hourly, more := parse(t, "@hourly", zone).Between(from, until, 100_000)
		require.False(t, more)
		if zone != "Australia/Lord_Howe" { // half an hour there
			assert.Len(t, hourly, int(until.Sub(from)/time.Hour), zone)
		}
		for i := range hourly[1:] {
			require.LessOrEqual(t, hourly[i+1].Sub(hourly[i]), 90*time.Minute, zone)
		}
	}
}

func TestDueTimesAreTheSameHoweverTheyAreComputed(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		schedule := parse(t, rapid.SampledFrom([]string{
			"* * * * *", "*/7 * * * *", "0 2 * * *", "0,30 1-3 * * *", "15 */5 * * 1-5", "59 23 31 * *", "0 0 29 2 *",
		}).Draw(t, "schedule"), rapid.SampledFrom([]string{"", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns"}).Draw(t, "zone"))
		after := time.Unix(rapid.Int64Range(1_500_000_000, 2_000_000_000).Draw(t, "after"), 0)
		n := rapid.IntRange(1, 40).Draw(t, "n")
		times := schedule.NextN(after, n)
		at := after
		for _, want := range times {
			next := schedule.Next(at)
			if !next.Equal(want) || !next.After(at) {
				t.Fatalf("after %s: %s, want %s", at, next, want)
			}
			at = next
		}
		between, more := schedule.Between(after, times[n-1], n)
		if more || len(between) != n || !between[0].Equal(times[0]) {
			t.Fatalf("between: %s, want %s", between, times)
		}
		newest, more := schedule.Between(after, times[n-1], 1)
		if more != (n > 1) || len(newest) != 1 || !newest[0].Equal(times[n-1]) {
			t.Fatalf("the newest: %s, want %s", newest, times[n-1])
		}
	})
}

func TestWhatIsNoSchedule(t *testing.T) {
	for schedule, want := range map[string]string{
		"":                           "must be five fields",
		"* * * *":                    "must be five fields",
		"0 0 2 * * *":                "must be five fields",
		"@every 1m":                  "must be five fields",
		"@yearly":                    "must be five fields",
		"TZ=Europe/Berlin 0 2 * * *": "must be five fields",
		"TZ=UTC 2 * * *":             `schedule "TZ=UTC 2 * * *"`,
		"60 2 * * *":                 "above maximum",
		"0 2 31 2 *":                 "it names a date that does not exist",
	} {
		_, err := due.Parse(schedule, "")
		require.ErrorContains(t, err, want, schedule)
	}
	for _, zone := range []string{"Local", "Mars/Olympus", "../etc/passwd"} {
		_, err := due.Parse("@daily", zone)
		require.ErrorContains(t, err, "must be an IANA name", zone)
	}
}

// A day is a day when the clocks are set, too: what an administrator allows is allowed all year.
func TestThePeriodIsThatOfClocksThatAreNeverSet(t *testing.T) {
	for schedule, want := range map[string]time.Duration{
		"0 2 * * *": 24 * time.Hour, "@weekly": 7 * 24 * time.Hour, "0 */2 * * *": 2 * time.Hour, "*/5 8-9 * * 1": 5 * time.Minute,
	} {
		parsed, err := due.Parse(schedule, "Europe/Berlin")
		require.NoError(t, err)
		assert.Equal(t, want, parsed.Period(time.Date(2026, 3, 20, 0, 0, 0, 0, time.UTC)), schedule)
	}
}

func TestJitter(t *testing.T) {
	schedule := func(s string) time.Duration {
		return parse(t, s, "").Period(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	assert.Equal(t, time.Minute, schedule("* * * * *"))
	assert.Equal(t, 30*time.Minute, schedule("0,30 2 * * *"))
	assert.Equal(t, 28*24*time.Hour, schedule("@monthly"))
	assert.Equal(t, 4*365*24*time.Hour+24*time.Hour, schedule("0 0 29 2 *"))
	seen := map[time.Duration]bool{}
	for i := range 1000 {
		uid := fmt.Sprint(i)
		jitter := due.Jitter(uid, nil, 24*time.Hour)
		assert.LessOrEqual(t, jitter, 15*time.Minute)
		assert.Equal(t, jitter, due.Jitter(uid, nil, 24*time.Hour))
		assert.LessOrEqual(t, due.Jitter(uid, nil, time.Minute), 6*time.Second)
		assert.Zero(t, due.Jitter(uid, new(time.Duration), 24*time.Hour))
		assert.LessOrEqual(t, due.Jitter(uid, new(time.Hour), time.Minute), time.Hour)
		seen[jitter] = true
	}
	assert.Greater(t, len(seen), 500, "they are spread")
}

func TestSchedulesAreTheSameInOtherWords(t *testing.T) {
	for _, same := range [][2]string{
		{"@daily", "0 0 * * *"}, {"0 2 * * MON", "0  2 * * 1"}, {"0 2 * * 7", "0 2 * * sun"}, {"0 2 * * 1-3", "0 2 * * 1,2,3"}, {"x", " x"},
	} {
		assert.True(t, due.Same(same[0], same[1]), same)
	}
	for _, other := range [][2]string{{"@daily", "@hourly"}, {"0 2 * * *", "0 3 * * *"}, {"0 2 1 * 1", "0 2 * * 1"}, {"x", "y"}} {
		assert.False(t, due.Same(other[0], other[1]), other)
	}
}
