package quota_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/holdfast/k8s/policy/quota"
	"holdfast.dev/holdfast/workflows/workflowtest/property"
)

// model is a namespace whose backups are judged as the activities judge them: counted, marked by a finalizer, counted again, and
// only then made. Each of these happens on its own, in any order between backups.
type model struct {
	limits  quota.Limits
	now     time.Time
	backups []*modelled
	made    int
	// created is how many there ever were: each has a name of its own.
	created int
}

type modelled struct {
	name           string
	created, begun time.Time
	// checked: a place was free when it was counted first. marked: others see that it takes a place. confirmed: it was still free
	// after that.
	checked, marked, confirmed, made, ended bool
}

func (m *model) seen() []quota.Backup {
	var all []quota.Backup
	for _, b := range m.backups {
		all = append(all, m.of(b))
	}
	return all
}

func (m *model) of(b *modelled) quota.Backup {
	seen := quota.Backup{Name: b.name, Created: b.created, Waits: !b.marked, Stored: b.marked, Active: b.marked && !b.ended, Begun: b.begun}
	if b.marked && !b.made {
		seen.Begun = m.now
	}
	return seen
}

func (m *model) free(b *modelled) bool {
	return quota.Decide(m.limits, quota.CountFor(m.of(b), m.seen(), m.now)).Exceeded == ""
}

// step takes the next step of one backup. It reports whether it took one.
func (m *model) step(b *modelled) bool {
	switch {
	case b.made:
		return false
	case b.confirmed:
		b.made, b.begun = true, m.now
		m.made++
	case b.marked:
		b.confirmed = m.free(b)
		b.marked, b.checked = b.confirmed, b.confirmed
	case b.checked:
		b.marked = true
	default:
		b.checked = m.free(b)
		return b.checked
	}
	return true
}

func (m *model) check(t *rapid.T) {
	made := quota.Usage{}
	for _, b := range m.backups {
		if !b.made {
			continue
		}
		made.Stored++
		if !b.ended {
			made.Active++
		}
		if b.begun.After(m.now.Add(-quota.Day)) {
			made.Begun = append(made.Begun, b.begun)
		}
	}
	for _, field := range m.limits.Set() {
		if used, limit := made.Used(field), m.limits.Limit(field); used > limit {
			t.Fatalf("%s: %d of at most %d", field, used, limit)
		}
	}
}

// settle judges every backup, one after the other and from any of them on, until none has a step left.
func (m *model) settle(t *rapid.T) {
	for moved := true; moved; {
		moved = false
		for _, b := range rapid.Permutation(m.backups).Draw(t, "order") {
			for m.step(b) {
				moved = true
				m.check(t)
			}
		}
	}
}

// oldestWaiting is the one that has its turn; nil if none waits.
func (m *model) oldestWaiting() *modelled {
	for _, b := range m.backups { // they are in the order of their creation
		if !b.made {
			return b
		}
	}
	return nil
}

func newModel(t *rapid.T) *model {
	limit := rapid.IntRange(0, 2)
	return &model{now: noon, limits: quota.Limits{
		MaxStored: limit.Draw(t, "maxStored"), MaxActive: limit.Draw(t, "maxActive"), MaxPerDay: limit.Draw(t, "maxPerDay"),
	}}
}

// create adds a backup. Names are in no order, and several may be of the same second.
func (m *model) create(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "later") == 0 {
		m.now = m.now.Add(time.Second)
	}
	m.created++
	name := fmt.Sprintf("%d-%d", rapid.IntRange(0, 9).Draw(t, "name"), m.created)
	m.backups = append(m.backups, &modelled{name: name, created: m.now})
}

func (m *model) draw(t *rapid.T) *modelled {
	if len(m.backups) == 0 {
		t.Skip("there is no backup")
	}
	return rapid.SampledFrom(m.backups).Draw(t, "backup")
}

// However the steps of backups mix, there are never more than are allowed.
func TestNeverMoreThanAllowed(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"create": m.create,
			"step":   func(t *rapid.T) { m.step(m.draw(t)) },
			"again":  func(t *rapid.T) { m.step(m.draw(t)) },
			"newest": func(t *rapid.T) { m.draw(t); m.step(m.backups[len(m.backups)-1]) },
			"all": func(*rapid.T) {
				for _, b := range m.backups {
					m.step(b)
				}
			},
			"end": func(t *rapid.T) { b := m.draw(t); b.ended = b.made },
			"delete": func(t *rapid.T) {
				if at := rapid.IntRange(0, max(0, len(m.backups)-1)).Draw(t, "at"); at < len(m.backups) {
					m.backups = append(m.backups[:at:at], m.backups[at+1:]...)
				}
			},
			"time": func(t *rapid.T) { m.now = m.now.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "hours")) * time.Hour) },
			"":     m.check,
		})
	})
}

// A place that gets free is the oldest's, and only its, in whichever order they are judged.
func TestAFreedPlaceAdmitsExactlyTheOldest(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		m := &model{now: noon, limits: quota.Limits{MaxStored: rapid.IntRange(1, 3).Draw(t, "maxStored")}}
		for range rapid.IntRange(2, 8).Draw(t, "backups") {
			m.now = m.now.Add(time.Second)
			m.create(t)
		}
		m.settle(t)
		for m.oldestWaiting() != nil {
			next, before := m.oldestWaiting(), m.made
			for i, b := range m.backups {
				if b.made {
					m.backups = append(m.backups[:i:i], m.backups[i+1:]...)
					break
				}
			}
			m.settle(t)
			if !next.made || m.made != before+1 {
				t.Fatalf("one place was freed: the oldest was made: %t; made in all: %d", next.made, m.made-before)
			}
		}
	})
}

// As long as backups end, expire and days pass, each that waits has its turn.
func TestNobodyWaitsForEver(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		m := newModel(t)
		for range rapid.IntRange(1, 12).Draw(t, "backups") {
			m.create(t)
		}
		for rounds := 0; m.oldestWaiting() != nil; rounds++ {
			if rounds > 24 {
				t.Fatalf("%+v waits", m.oldestWaiting())
			}
			m.settle(t)
			m.now = m.now.Add(quota.Day)
			var kept []*modelled
			for _, b := range m.backups {
				if !b.made {
					kept = append(kept, b)
				}
			}
			m.backups = kept // the others have ended and expired
		}
	})
}

// A limit names the time at which it passes, if nothing else happens: not a second before.
func TestALimitOfADayPassesWhenItSays(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		m := &model{now: noon, limits: quota.Limits{MaxPerDay: rapid.IntRange(1, 4).Draw(t, "maxPerDay")}}
		for range rapid.IntRange(2, 10).Draw(t, "backups") {
			m.now = m.now.Add(time.Duration(rapid.IntRange(1, 7200).Draw(t, "seconds")) * time.Second)
			m.create(t)
			m.settle(t)
		}
		next := m.oldestWaiting()
		if next == nil {
			t.Skip("there is room")
		}
		passes := quota.Decide(m.limits, quota.CountFor(m.of(next), m.seen(), m.now)).Passes
		if passes.IsZero() {
			t.Fatalf("the oldest does not know when it passes")
		}
		m.now = passes.Add(-time.Second)
		if m.free(next) {
			t.Fatalf("it passes before %s", passes)
		}
		m.now = passes
		if !m.free(next) {
			t.Fatalf("it does not pass at %s", passes)
		}
	})
}

// Two that were both judged when they could not see each other: the one that comes later in the order was created first.
func TestOfTwoThatRaceForTheLastPlaceOneIsMade(t *testing.T) {
	for _, order := range [][]int{{0, 1, 0, 1}, {1, 0, 1, 0}, {0, 1, 1, 0}, {1, 0, 0, 1}, {0, 0, 0, 1}, {1, 1, 0, 0}} {
		first, second := &modelled{name: "z", created: noon}, &modelled{name: "a", created: noon}
		m := &model{now: noon, limits: quota.Limits{MaxStored: 1}, backups: []*modelled{first}}
		m.step(first)
		m.backups = append(m.backups, second)
		m.step(second)
		for _, at := range order {
			m.step(m.backups[at])
		}
		for range 8 { // one that gave its place up is judged again
			m.step(second)
			m.step(first)
		}
		if m.made != 1 {
			t.Fatalf("%v: %d were made", order, m.made)
		}
	}
}
