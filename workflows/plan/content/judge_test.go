package content_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/plan/content"
	"holdfast.dev/holdfast/workflows/workflowtest/property"
)

const (
	day     = 24 * time.Hour
	unknown = -1
	bare    = 3
)

var first = time.Date(2026, 11, 1, 2, 0, 0, 0, time.UTC)

// nightly returns the good backups of so many nights by their items; all of them have as many volumes as given.
func nightly(volumes int64, items ...int64) []content.Run {
	var runs []content.Run
	for night, n := range items {
		run := content.Run{Ended: true}
		run.Name, run.Time, run.Volumes = fmt.Sprint(night), metav1.NewTime(first.Add(time.Duration(night)*day)), volumes
		if n != unknown {
			run.Items, run.Empty = new(n), n <= bare && volumes == 0
		}
		runs = append(runs, run)
	}
	return runs
}

// judged has the plan see one backup after the other end, while all are stored.
func judged(runs []content.Run) *holdfastv1alpha1.Content {
	var state *holdfastv1alpha1.Content
	for at := range runs {
		stored := append([]content.Run(nil), runs[:at+1]...)
		for i := range stored[:at] {
			stored[i].Ended = false
		}
		state = content.Judge(state, stored)
	}
	return state
}

func names(usual []holdfastv1alpha1.RunContent) (names []string) {
	for _, one := range usual {
		names = append(names, one.Name)
	}
	return names
}

func TestWhatBackupsHold(t *testing.T) {
	emptied := append([]int64{40, 41, 42}, make([]int64, 40)...)
	for i := range emptied[3:] {
		emptied[3+i] = bare
	}
	shrunk := append([]int64(nil), emptied...)
	for i := range shrunk[3:] {
		shrunk[3+i] = 12
	}
	for title, test := range map[string]struct {
		runs  []content.Run
		want  string
		less  int64
		usual []string
	}{
		"the first":                     {nightly(0, 40), "Usual", 0, []string{"0"}},
		"as much":                       {nightly(2, 40, 44, 39), "Usual", 0, []string{"2", "1", "0"}},
		"half":                          {nightly(0, 40, 20), "Usual", 0, []string{"1", "0"}},
		"less than half":                {nightly(0, 40, 19), "FarLess", 1, []string{"0"}},
		"twice":                         {nightly(0, 40, 19, 18), "FarLess", 2, []string{"0"}},
		"and then as much as before":    {nightly(0, 40, 19, 38), "Usual", 0, []string{"2", "0"}},
		"as little as it once did":      {nightly(0, 12, 90, 10), "Usual", 0, []string{"2", "1", "0"}},
		"as it did six backups ago":     {nightly(0, 12, 90, 91, 92, 93, 94, 11), "FarLess", 1, []string{"5", "4", "3", "2", "1"}},
		"a namespace that was emptied":  {nightly(0, emptied...), "Empty", 40, []string{"2", "1", "0"}},
		"a small one, too":              {nightly(0, 5, bare), "Empty", 1, []string{"0"}},
		"one that has shrunk for good":  {nightly(0, shrunk...), "Usual", 0, []string{"42", "41", "40", "39", "38"}},
		"shrunk for less than 30 days":  {nightly(0, shrunk[:33]...), "FarLess", 30, []string{"2", "1", "0"}},
		"one that was always empty":     {nightly(0, bare, bare), "Empty", 0, nil},
		"until somebody puts things in": {nightly(0, bare, 9), "Usual", 0, []string{"1"}},
		"what nobody has counted":       {nightly(0, 40, unknown), "Unknown", 0, []string{"1", "0"}},
		"after that":                    {nightly(0, unknown, 5), "Usual", 0, []string{"1", "0"}},
		"emptied, and then nearly so":   {nightly(0, append(emptied, 5)...), "FarLess", 1, []string{"2", "1", "0"}},
		"more seldom, 30 days are few":  {weekly(nightly(0, shrunk[:9]...)), "FarLess", 6, []string{"2", "1", "0"}},
	} {
		state := judged(test.runs)
		assert.Equal(t, test.want, content.Verdict(*state.Newest, state.Usual), title)
		assert.Equal(t, test.less, state.Less, title)
		assert.Equal(t, test.less > 0, state.LessSince != nil, title)
		assert.Equal(t, test.usual, names(state.Usual), title)
	}
}

func weekly(runs []content.Run) []content.Run {
	for i := range runs {
		runs[i].Time = metav1.NewTime(first.Add(time.Duration(i) * 7 * day))
	}
	return runs
}

func TestVolumesCountAsItemsDo(t *testing.T) {
	for _, test := range []struct {
		before, now int64
		want        string
	}{{0, 0, "Usual"}, {1, 0, "FarLess"}, {2, 1, "Usual"}, {3, 1, "FarLess"}, {4, 2, "Usual"}, {1, 9, "Usual"}} {
		runs := nightly(test.before, 40, 40)
		runs[1].Volumes = test.now
		state := judged(runs)
		assert.Equal(t, test.want, content.Verdict(*state.Newest, state.Usual), "%d, then %d volumes", test.before, test.now)
	}
}

// Volumes may be counted after the end: then the backup does not hold less, and never did.
func TestTheNewestIsJudgedAgain(t *testing.T) {
	runs := nightly(2, 40, 40)
	runs[1].Volumes = 0
	state := judged(runs)
	assert.Equal(t, int64(1), state.Less)
	runs[0].Ended, runs[1].Ended = false, false
	assert.Equal(t, state, content.Judge(state, runs), "nothing is counted twice")
	runs[1].Volumes = 2
	state = content.Judge(state, runs)
	assert.Zero(t, state.Less)
	assert.Equal(t, []string{"1", "0"}, names(state.Usual))
}

func TestAPersonSaysWhatIsUsual(t *testing.T) {
	runs := nightly(0, 40, 12, 13)
	runs[1].Declared = true // the last but one: another has ended since
	state := judged(runs)
	assert.Equal(t, "Usual", content.Verdict(*state.Newest, state.Usual))
	assert.Equal(t, []string{"2", "1"}, names(state.Usual))
	assert.Zero(t, state.Less)

	empty := nightly(0, 40, bare, bare)
	empty[1].Declared = true
	state = judged(empty)
	assert.Equal(t, "Usual", content.Verdict(*state.Newest, state.Usual), "an empty one, too")

	old := nightly(0, 12, 40, 13)
	old[0].Declared = true
	state = judged(old)
	old[0].Ended, old[1].Ended, old[2].Ended = false, false, false
	assert.Equal(t, state, content.Judge(state, old), "what is older than the measure does not become it")
}

// Nothing is left to protect if nothing that held more is stored: an administrator's ttl may have ended it. If it comes back, as
// after a rebuild of the cluster, it is protected again.
func TestWhatIsGoneIsNoMeasure(t *testing.T) {
	runs := nightly(0, 40, 12, bare)
	state := judged(runs)
	for i := range runs {
		runs[i].Ended = false
	}
	state = content.Judge(state, runs[1:])
	assert.Equal(t, []string{"1"}, names(state.Usual))
	assert.Equal(t, int64(1), state.Less)
	state = content.Judge(state, runs[2:])
	assert.Empty(t, state.Usual)
	assert.Zero(t, state.Less)
	assert.Nil(t, content.Judge(state, nil))
	assert.Equal(t, []string{"0"}, names(content.Judge(state, runs).Usual))
}

func TestWhoDeletesWhatHoldsLessIsBackAtWhatIsUsual(t *testing.T) {
	runs := nightly(0, 40, 12)
	state := judged(runs)
	runs[0].Ended = false
	state = content.Judge(state, runs[:1])
	assert.Equal(t, "Usual", content.Verdict(*state.Newest, state.Usual))
	assert.Zero(t, state.Less)
}

// A backup that began before the newest, and ends after it, does not say that all is well.
func TestABackupThatEndsLate(t *testing.T) {
	runs := nightly(0, 40, 41, 12)
	state := judged([]content.Run{runs[0], runs[2]})
	runs[0].Ended, runs[2].Ended = false, false
	state = content.Judge(state, runs)
	assert.Equal(t, "FarLess", content.Verdict(*state.Newest, state.Usual))
	assert.Equal(t, int64(1), state.Less)
	assert.Equal(t, []string{"1", "0"}, names(state.Usual), "it holds what is usual")
}

func TestAPlanThatHasBackupsAlreadyIsJudgedByThem(t *testing.T) {
	assert.Nil(t, content.Judge(nil, nil))
	runs := nightly(0, 40, 41, bare)
	for i := range runs {
		runs[i].Ended = false
	}
	assert.Equal(t, judged(nightly(0, 40, 41, bare)), content.Judge(nil, runs))
}

// However its backups come, a plan does not take an empty one for usual as long as it has one that is not, and judging twice is
// judging once.
func TestAnEmptyBackupIsNeverUsualByItself(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		runs := nightly(0, rapid.SliceOfN(rapid.Int64Range(unknown, 60), 1, 60).Draw(t, "items")...)
		state := judged(runs)
		for _, one := range state.Usual {
			if one.Empty {
				t.Fatalf("%+v", state)
			}
		}
		for i := range runs {
			runs[i].Ended = false
		}
		if again := content.Judge(state, runs); !assert.ObjectsAreEqual(state, again) {
			t.Fatalf("%+v, then %+v", state, again)
		}
	})
}
