package retention_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/holdfast/workflows/plan/retention"
	"holdfast.dev/holdfast/workflows/workflowtest/property"
)

func drawKeep(t *rapid.T, label string) retention.Keep {
	n := func(rule string) int { return rapid.IntRange(0, 5).Draw(t, label+rule) }
	return retention.Keep{
		Last: n("last"), Hourly: n("hourly"), Daily: n("daily"), Weekly: n("weekly"), Monthly: n("monthly"), Yearly: n("yearly"),
		MinGood: n("minGood"), Failed: n("failed"),
	}
}

func drawBackups(t *rapid.T) []retention.Backup {
	backups := make([]retention.Backup, rapid.IntRange(0, 40).Draw(t, "backups"))
	for i := range backups {
		backups[i] = retention.Backup{
			Name:  fmt.Sprint(i),
			State: retention.State(rapid.IntRange(0, 2).Draw(t, "state")),
			Begin: time.Unix(rapid.Int64Range(0, 3*366*24).Draw(t, "begin")*3600+1_700_000_000, 0),
			Held:  rapid.IntRange(0, 9).Draw(t, "held") == 0,
			Usual: rapid.Bool().Draw(t, "usual"),
		}
		if rapid.IntRange(0, 9).Draw(t, "used") == 0 {
			backups[i].Used = "NonAdminRestore undo"
		}
	}
	return backups
}

var zones = []string{"UTC", "Europe/Berlin", "Pacific/Auckland", "America/St_Johns"}

func drawZone(t *rapid.T) *time.Location {
	location, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
	if err != nil {
		t.Fatal(err)
	}
	return location
}

var late = time.Unix(1_900_000_000, 0)

func TestEachBackupHasOneVerdictAndEnoughStay(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		keep, backups := drawKeep(t, ""), drawBackups(t)
		v := retention.Decide(keep, drawZone(t), backups, late, time.Time{})
		all := slices.Concat(names(v.Kept), names(v.Due), names(v.Blocked))
		slices.Sort(all)
		if len(slices.Compact(all)) != len(backups) || len(v.Kept)+len(v.Due)+len(v.Blocked) != len(backups) {
			t.Fatalf("of %d backups: %+v", len(backups), v)
		}
		good, stay, usual, usualStay := 0, 0, 0, 0
		due := names(v.Due)
		for _, b := range backups {
			if b.State == retention.Good {
				good++
				stays := !slices.Contains(due, b.Name)
				stay += one(stays)
				usual, usualStay = usual+one(b.Usual), usualStay+one(b.Usual && stays)
			}
			if slices.Contains(due, b.Name) && (b.State == retention.Unfinished || b.Held || b.Used != "") {
				t.Fatalf("%+v is to be deleted", b)
			}
		}
		if stay < min(good, max(keep.MinGood, keep.Last)) {
			t.Fatalf("%d of %d good backups stay, with %+v", stay, good, keep)
		}
		if usualStay < min(usual, keep.MinGood) {
			t.Fatalf("%d of %d backups that hold what is usual stay, with %+v", usualStay, usual, keep)
		}
	})
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

func TestKeepingMoreNeverDeletesMore(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		keep, more, backups, zone := drawKeep(t, ""), drawKeep(t, "more "), drawBackups(t), drawZone(t)
		more = retention.Keep{
			Last: keep.Last + more.Last, Hourly: keep.Hourly + more.Hourly, Daily: keep.Daily + more.Daily,
			Weekly: keep.Weekly + more.Weekly, Monthly: keep.Monthly + more.Monthly, Yearly: keep.Yearly + more.Yearly,
			MinGood: keep.MinGood + more.MinGood, Failed: keep.Failed + more.Failed,
		}
		due := names(retention.Decide(keep, zone, backups, late, time.Time{}).Due)
		for _, name := range names(retention.Decide(more, zone, backups, late, time.Time{}).Due) {
			if !slices.Contains(due, name) {
				t.Fatalf("%s is deleted by %+v and not by %+v", name, more, keep)
			}
		}
	})
}

func TestTheAnswerIsTheSameAtEveryHour(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		keep, backups, zone := drawKeep(t, ""), drawBackups(t), drawZone(t)
		want := fmt.Sprint(retention.Decide(keep, zone, backups, late, late))
		hours := rapid.IntRange(0, 24*366).Draw(t, "hours")
		shuffled := rapid.Permutation(backups).Draw(t, "order")
		got := fmt.Sprint(retention.Decide(keep, zone, shuffled, late.Add(time.Duration(hours)*time.Hour), late))
		if got != want {
			t.Fatalf("after %d hours\n%s, want\n%s", hours, got, want)
		}
	})
}

// One after the other, and judged again after each deletion: the same backups go as if all went at once.
func TestDeletingOneChangesNothingForTheOthers(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		keep, backups, zone := drawKeep(t, ""), drawBackups(t), drawZone(t)
		due := names(retention.Decide(keep, zone, backups, late, late).Due)
		for len(due) > 0 {
			backups = slices.DeleteFunc(backups, func(b retention.Backup) bool { return b.Name == due[0] })
			next := names(retention.Decide(keep, zone, backups, late, late).Due)
			if !slices.Equal(next, due[1:]) {
				t.Fatalf("without %s: %v, want %v", due[0], next, due[1:])
			}
			due = next
		}
	})
}

func TestAClockThatJumpsBackDeletesNothing(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		keep, backups, zone := drawKeep(t, ""), drawBackups(t), drawZone(t)
		seen := late
		now := seen.Add(-time.Duration(rapid.Int64Range(1, 5*366*24*3600).Draw(t, "seconds back")) * time.Second)
		if v := retention.Decide(keep, zone, backups, now, seen); len(v.Due) > 0 {
			t.Fatalf("%v", v.Due)
		}
	})
}
