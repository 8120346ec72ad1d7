package due

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the image has no time zones

	"github.com/robfig/cron/v3"
)

// Schedule is the schedule of a plan, read. Its times are whole minutes.
type Schedule struct {
	civil *cron.SpecSchedule // over times without a zone: those of UTC stand for them
	zone  *time.Location
	// everyHour: it names no hours. Then it is about hours that pass, of which a day with a change of clocks has one more or less.
	everyHour bool
}

// ErrNever says that no day ever matches a schedule.
var ErrNever = errors.New("it names a date that does not exist")

// names are the schedules that have names; @daily for the fields.
var names = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *",
}

// allHours has a bit for each hour, as cron.SpecSchedule.
const allHours = 1<<24 - 1

// gapMost is the longest time by which clocks were ever set: whole days were skipped where the date line moved.
const gapMost = 25 * time.Hour

// Parse reads a schedule: five fields of cron, or @hourly, @daily, @weekly or @monthly. zone is an IANA name; UTC if empty.
// The CRD (k8s/api/holdfast) checks the number of fields before.
func Parse(schedule, zone string) (Schedule, error) {
	fields := strings.Fields(schedule)
	if named, ok := names[strings.TrimSpace(schedule)]; ok {
		fields = strings.Fields(named)
	}
	if len(fields) != 5 {
		return Schedule{}, fmt.Errorf("schedule %q: must be five fields (minute, hour, day of month, month, day of week), or @hourly, "+
			"@daily, @weekly or @monthly", schedule)
	}
	fields[weekday] = sundays(fields[weekday])
	parsed, err := cron.ParseStandard("TZ=UTC " + strings.Join(fields, " "))
	if err != nil {
		return Schedule{}, fmt.Errorf("schedule %q: %w", schedule, err)
	}
	civil := parsed.(*cron.SpecSchedule) // as of all fields
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return Schedule{}, fmt.Errorf("time zone %q: must be an IANA name, for example Europe/Berlin", zone)
	}
	if civil.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Schedule{}, fmt.Errorf("schedule %q: %w", schedule, ErrNever)
	}
	return Schedule{civil: civil, zone: location, everyHour: civil.Hour&allHours == allHours}, nil
}

// weekday is the field of the days of the week.
const weekday = 4

// sundays writes Sunday as 0, which crontab(5) also has as 7: in a range up to 7, each day by itself.
func sundays(field string) string {
	parts := strings.Split(field, ",")
	for i, part := range parts {
		days, step, steps := strings.Cut(part, "/")
		from, to, isRange := strings.Cut(days, "-")
		switch {
		case days == "7":
			parts[i] = "0"
		case isRange && to == "7":
			first, known := weekdayNumber(from)
			every, err := strconv.Atoi(step)
			if !steps {
				every, err = 1, nil
			}
			if !known || err != nil || every < 1 {
				continue // the parser says what is wrong
			}
			var each []string
			for day := first; day <= 7; day += every {
				each = append(each, strconv.Itoa(day%7))
			}
			parts[i] = strings.Join(each, ",")
		}
	}
	return strings.Join(parts, ",")
}

// weekdayNumber returns the number of a day of the week that a schedule names by number or by three letters.
func weekdayNumber(text string) (number int, known bool) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if text == strconv.Itoa(int(day)) || strings.EqualFold(text, day.String()[:3]) {
			return int(day), true
		}
	}
	return 7, text == "7"
}

// Same reports whether two schedules name the same times, in whichever words: @daily and 0 0 * * *, MON and 1. What is none is
// the same only as itself.
func Same(a, b string) bool {
	one, err := Parse(a, "")
	other, otherErr := Parse(b, "")
	if err != nil || otherErr != nil {
		return slices.Equal(strings.Fields(a), strings.Fields(b))
	}
	x, y := *one.civil, *other.civil
	x.Location, y.Location = nil, nil
	return x == y
}

// civilly is the schedule of clocks that are never set.
func (s Schedule) civilly() Schedule {
	s.zone = time.UTC
	return s
}

// Zone is the time zone of the schedule.
func (s Schedule) Zone() *time.Location { return s.zone }

// Next returns the first due time after a moment.
func (s Schedule) Next(after time.Time) time.Time {
	return s.NextN(after, 1)[0]
}

// Between returns the due times after one moment and not after another, in order; the newest ones if there are more than most.
func (s Schedule) Between(after, until time.Time, most int) (times []time.Time, more bool) {
	for next := s.Next(after); !next.After(until); {
		batch := s.NextN(next.Add(-time.Second), batchSize)
		for _, at := range batch {
			if at.After(until) {
				break
			}
			times = append(times, at)
		}
		next = s.Next(batch[len(batch)-1])
		if len(times) > most {
			times, more = times[len(times)-most:], true
		}
	}
	return times, more
}

const batchSize = 64

// NextN returns the first n due times after a moment, in order. It computes them from those of a clock on the wall. A time that
// the clock shows twice is due once, at first; one that it skips is due as much later as it skips. Of a schedule for every hour
// both are due, and none.
func (s Schedule) NextN(moment time.Time, n int) []time.Time {
	margin := gapMost
	if s.everyHour {
		margin = 3 * time.Hour // no more is ever set back
	}
	var times []time.Time
	last := time.Time{} // on the wall: later ones are due later than all that are wanted
	for wall := s.shows(s.wall(moment).Add(-margin)); last.IsZero() || !wall.After(last); wall = s.shows(wall) {
		for _, at := range s.instants(wall) {
			place, known := slices.BinarySearchFunc(times, at, time.Time.Compare)
			if at.After(moment) && !known {
				times = slices.Insert(times, place, at)
			}
		}
		if len(times) >= n && last.IsZero() {
			last = wall.Add(margin)
		}
	}
	return times[:n]
}

// shows returns the next time on the wall that the schedule names.
func (s Schedule) shows(after time.Time) time.Time {
	for ; ; after = after.AddDate(4, 0, 0) { // the library gives up after five years: there is a leap day in eight
		if wall := s.civil.Next(after); !wall.IsZero() {
			return wall
		}
	}
}

// wall is what the clock on the wall shows, as a time of UTC.
func (s Schedule) wall(moment time.Time) time.Time {
	_, offset := moment.In(s.zone).Zone()
	return moment.UTC().Add(time.Duration(offset) * time.Second)
}

// instants returns when a time on the wall is due, in UTC.
func (s Schedule) instants(wall time.Time) []time.Time {
	var shown []time.Time
	before, after := s.offset(wall.Add(-gapMost)), s.offset(wall.Add(gapMost))
	for _, offset := range []time.Duration{max(before, after), min(before, after)} { // the earlier moment first
		at := wall.Add(-offset)
		if s.wall(at).Equal(wall) && !slices.ContainsFunc(shown, at.Equal) {
			shown = append(shown, at)
		}
	}
	switch {
	case s.everyHour:
		return shown
	case len(shown) == 0:
		return []time.Time{wall.Add(-before)} // as if the clock had not been set
	}
	return shown[:1]
}

func (s Schedule) offset(moment time.Time) time.Duration {
	_, seconds := moment.In(s.zone).Zone()
	return time.Duration(seconds) * time.Second
}
