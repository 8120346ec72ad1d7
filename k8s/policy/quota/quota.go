package quota

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Field is a limit, by its name in the policy.
type Field string

// The limits, in the order in which they are judged.
const (
	MaxStored Field = "maxStored"
	MaxActive Field = "maxActive"
	MaxPerDay Field = "maxPerDay"
	MaxBytes  Field = "maxBytes"
)

// Day is the time that MaxPerDay counts, always until now.
const Day = 24 * time.Hour

// Limits are those of one namespace. Zero is no limit.
type Limits struct {
	// MaxStored is how many NonAdminBackups may have a Velero Backup, or be about to.
	MaxStored int `json:"maxStored,omitempty"`
	// MaxActive is how many of these may be unfinished.
	MaxActive int `json:"maxActive,omitempty"`
	// MaxPerDay is how many may begin within any 24 hours.
	MaxPerDay int `json:"maxPerDay,omitempty"`
	// MaxBytes is what their volumes may hold before a further backup waits. The size of a backup is known only afterwards.
	MaxBytes resource.Quantity `json:"maxBytes,omitzero"`
}

// Limit is the value of one limit; zero if there is none.
func (l Limits) Limit(of Field) int64 {
	switch of {
	case MaxStored:
		return int64(l.MaxStored)
	case MaxActive:
		return int64(l.MaxActive)
	case MaxPerDay:
		return int64(l.MaxPerDay)
	case MaxBytes:
		return l.MaxBytes.Value()
	}
	return 0
}

// Fields are all limits, in their order.
func Fields() []Field { return []Field{MaxStored, MaxActive, MaxPerDay, MaxBytes} }

// Set are the limits that are set, in their order.
func (l Limits) Set() []Field {
	return slices.DeleteFunc(Fields(), func(f Field) bool { return l.Limit(f) == 0 })
}

// Backup is a NonAdminBackup as it is counted. It has a place if it is Stored, wants one if it Waits, and else does not count.
type Backup struct {
	Name    string
	Created time.Time
	// Waits: it wants a place and has none.
	Waits bool
	// Stored: its Velero Backup exists or is about to be created. Active: that is not finished.
	Stored, Active bool
	// Begun is when its Velero Backup was created; zero for one that was not made here. Begins: that is about to happen, at its
	// turn.
	Begun  time.Time
	Begins bool
}

// Before reports whether a backup has its turn before another: the older one, and of two of the same second the first by name.
func (b Backup) Before(other Backup) bool {
	return cmp.Or(b.Created.Compare(other.Created), cmp.Compare(b.Name, other.Name)) < 0
}

// Usage is what the backups of a namespace take of its limits.
type Usage struct {
	Stored, Active int
	// Begun are the times at which backups began within the last day, oldest first.
	Begun []time.Time
	// Begins is how many are about to begin.
	Begins int
	// Bytes are what their volumes hold.
	Bytes int64
	// Older is how many backups wait that have their turn before the one that is judged.
	Older int
}

// Count counts the backups of a namespace.
func Count(all []Backup, now time.Time) Usage {
	var u Usage
	for _, b := range all {
		if b.Stored {
			u.Stored++
		}
		if b.Active {
			u.Active++
		}
		if b.Begins {
			u.Begins++
		}
		if b.Begun.After(now.Add(-Day)) {
			u.Begun = append(u.Begun, b.Begun)
		}
	}
	slices.SortFunc(u.Begun, time.Time.Compare)
	return u
}

// CountFor counts what is before one backup: all others that have a place, whatever their age, and those that wait and are older.
// So of two that are judged at the same time the older one has the place, if each is judged after both can be seen.
func CountFor(judged Backup, all []Backup, now time.Time) Usage {
	others := slices.DeleteFunc(slices.Clone(all), func(b Backup) bool { return b.Name == judged.Name })
	u := Count(others, now)
	for _, b := range others {
		if b.Waits && b.Before(judged) {
			u.Older++
		}
	}
	return u
}

// Used is what is taken of one limit.
func (u Usage) Used(of Field) int64 {
	switch of {
	case MaxStored:
		return int64(u.Stored)
	case MaxActive:
		return int64(u.Active)
	case MaxPerDay:
		return int64(len(u.Begun) + u.Begins)
	case MaxBytes:
		return u.Bytes
	}
	return 0
}

// Verdict says which limit leaves no place.
type Verdict struct {
	// Exceeded is the first such limit; empty if there is a place.
	Exceeded Field
	// Used is at least Limit: a free place that an older backup waits for is used.
	Used, Limit int64
	// Passes is when MaxPerDay leaves a place, if nothing is deleted; zero of other limits, and while that depends on backups that
	// have not begun.
	Passes time.Time
}

// Decide judges one more backup. It depends on the time only by Usage.
func Decide(limits Limits, u Usage) Verdict {
	for _, field := range limits.Set() {
		used, limit := u.Used(field), limits.Limit(field)
		wanted := used
		if field != MaxBytes { // bytes are no places: what a backup will take is not known
			wanted += int64(u.Older)
		}
		if wanted < limit {
			continue
		}
		v := Verdict{Exceeded: field, Used: max(used, limit), Limit: limit}
		if toPass := wanted - limit; field == MaxPerDay && toPass < int64(len(u.Begun)) {
			v.Passes = u.Begun[toPass].Add(Day)
		}
		return v
	}
	return Verdict{}
}

// Message is a sentence for the tenant. It stays the same as long as nothing changes that the tenant could act on: each change
// of it is a write.
func (v Verdict) Message() string {
	switch v.Exceeded {
	case MaxStored:
		return fmt.Sprintf("This namespace has %d of at most %d stored backups (maxStored). Delete one, or let one expire; "+
			"this backup is then made automatically.", v.Used, v.Limit)
	case MaxActive:
		return fmt.Sprintf("This namespace has %d of at most %d unfinished backups (maxActive). This backup is made automatically "+
			"when one of them has ended.", v.Used, v.Limit)
	case MaxPerDay:
		when := "after older ones that wait this backup is made automatically."
		if !v.Passes.IsZero() {
			when = fmt.Sprintf("the next may begin at %s. This backup is then made automatically.", v.Passes.UTC().Format(time.RFC3339))
		}
		return fmt.Sprintf("This namespace has made %d of at most %d backups a day (maxPerDay); %s", v.Used, v.Limit, when)
	case MaxBytes:
		return fmt.Sprintf("The backups of this namespace hold %s of at most %s (maxBytes). Delete some, or let them expire; "+
			"this backup is then made automatically.", Bytes(v.Used), Bytes(v.Limit))
	}
	return ""
}

// Bytes is a size for people, in the unit in which a policy has it.
func Bytes(size int64) string {
	const unit = 1024
	scaled, exponent := float64(size), 0
	for scaled >= unit && exponent < 5 {
		scaled /= unit
		exponent++
	}
	if exponent == 0 {
		return fmt.Sprintf("%d bytes", size)
	}
	return fmt.Sprintf("%.4g%ci", scaled, " KMGTP"[exponent])
}
