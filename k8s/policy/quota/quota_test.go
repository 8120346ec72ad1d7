package quota_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/resource"

	"holdfast.dev/holdfast/k8s/policy/quota"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

func held(name string, begun time.Time, active bool) quota.Backup {
	return quota.Backup{Name: name, Created: begun, Stored: true, Active: active, Begun: begun}
}

func waiting(name string, created time.Time) quota.Backup {
	return quota.Backup{Name: name, Created: created, Waits: true}
}

func TestEachLimitSaysWhatIsUsedAndHowItPasses(t *testing.T) {
	all := []quota.Backup{
		held("a", ago(23*time.Hour), false), held("b", ago(2*time.Hour), true), held("c", ago(25*time.Hour), false),
		{Name: "refused", Created: ago(48 * time.Hour)},
		{Name: "synced", Created: ago(time.Hour), Stored: true},
	}
	judged := waiting("new", noon)
	all = append(all, judged, waiting("younger", noon.Add(time.Second)))
	for title, test := range map[string]struct {
		limits quota.Limits
		want   string
	}{
		"no limit":     {},
		"room for one": {limits: quota.Limits{MaxStored: 5, MaxActive: 2, MaxPerDay: 3, MaxBytes: resource.MustParse("10Gi")}},
		"stored": {quota.Limits{MaxStored: 4, MaxActive: 1}, "This namespace has 4 of at most 4 stored backups (maxStored). " +
			"Delete one, or let one expire; this backup is then made automatically."},
		"more than is allowed now": {quota.Limits{MaxStored: 2}, "This namespace has 4 of at most 2 stored backups (maxStored). " +
			"Delete one, or let one expire; this backup is then made automatically."},
		"active": {quota.Limits{MaxActive: 1}, "This namespace has 1 of at most 1 unfinished backups (maxActive). " +
			"This backup is made automatically when one of them has ended."},
		"a day": {quota.Limits{MaxPerDay: 2}, "This namespace has made 2 of at most 2 backups a day (maxPerDay); " +
			"the next may begin at 2026-11-25T13:00:00Z. This backup is then made automatically."},
		"bytes": {quota.Limits{MaxBytes: resource.MustParse("9Gi")}, "The backups of this namespace hold 9Gi of at most 9Gi (maxBytes). " +
			"Delete some, or let them expire; this backup is then made automatically."},
	} {
		t.Run(title, func(t *testing.T) {
			usage := quota.CountFor(judged, all, noon)
			usage.Bytes = 9 << 30
			assert.Equal(t, test.want, quota.Decide(test.limits, usage).Message())
		})
	}
}

// A free place is the older one's, and the text does not change while that takes it.
func TestAnOlderBackupThatWaitsHasTheFreePlace(t *testing.T) {
	older, younger := waiting("z", ago(time.Hour)), waiting("a", ago(time.Minute))
	taken := []quota.Backup{held("1", ago(5*time.Hour), false), held("2", ago(4*time.Hour), false)}
	limits := quota.Limits{MaxStored: 2, MaxPerDay: 2}
	judge := func(of quota.Backup, all ...quota.Backup) quota.Verdict {
		return quota.Decide(limits, quota.CountFor(of, append(all, older, younger), noon))
	}
	full := judge(younger, taken...)
	assert.Equal(t, quota.MaxStored, full.Exceeded)
	assert.Empty(t, judge(older, taken[0]).Exceeded)
	assert.Equal(t, full, judge(younger, taken[0]))
	same := waiting("b", younger.Created)
	assert.Equal(t, 1, quota.CountFor(same, []quota.Backup{younger, same}, noon).Older, "of the same second the first by name")
	assert.Zero(t, quota.CountFor(younger, []quota.Backup{younger, same}, noon).Older)
}

func TestOfADaysPlacesEachThatWaitsKnowsItsOwn(t *testing.T) {
	all := []quota.Backup{held("1", ago(20*time.Hour), false), held("2", ago(10*time.Hour), false)}
	all = append(all, waiting("3", ago(3*time.Hour)), waiting("4", ago(2*time.Hour)), waiting("5", ago(time.Hour)))
	judge := func(at int) quota.Verdict {
		return quota.Decide(quota.Limits{MaxPerDay: 2}, quota.CountFor(all[at], all, noon))
	}
	assert.Equal(t, noon.Add(4*time.Hour), judge(2).Passes)
	assert.Equal(t, noon.Add(14*time.Hour), judge(3).Passes)
	assert.Zero(t, judge(4).Passes)
	assert.Contains(t, judge(4).Message(), "2 of at most 2 backups a day (maxPerDay); after older ones that wait")
}

func TestASizeIsShownAsAPolicyHasIt(t *testing.T) {
	for size, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1 << 10: "1Ki", 3 << 29: "1.5Gi", 2 << 40: "2Ti", 5000 << 50: "5000Pi"} {
		assert.Equal(t, want, quota.Bytes(size))
	}
}

// TestNobodyKnowsWhenADayHasAPlaceThatIsForATurn: its backup has not begun, and the sentence must not change with the time.
func TestNobodyKnowsWhenADayHasAPlaceThatIsForATurn(t *testing.T) {
	noon := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	limits := quota.Limits{MaxPerDay: 2}
	one := quota.Backup{Name: "one", Stored: true, Begun: noon.Add(-time.Hour)}
	inLine := quota.Backup{Name: "in-line", Stored: true, Active: true, Begins: true}
	decide := func(all ...quota.Backup) quota.Verdict {
		return quota.Decide(limits, quota.CountFor(quota.Backup{Name: "new", Created: noon}, all, noon))
	}
	assert.Equal(t, noon.Add(23*time.Hour), decide(one, inLine).Passes)
	second := inLine
	second.Name = "second"
	verdict := decide(inLine, second)
	assert.Equal(t, quota.MaxPerDay, verdict.Exceeded)
	assert.Zero(t, verdict.Passes)
	assert.Empty(t, decide(inLine).Exceeded)
}
