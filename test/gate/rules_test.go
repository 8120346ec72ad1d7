package gate_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/gate"
)

const e2e = "holdfast.dev/holdfast/test/e2e"

func names(n int) (tests []string) {
	for i := range n {
		tests = append(tests, fmt.Sprintf("Test%d", i))
	}
	return tests
}

func TestWhatRunsAgain(t *testing.T) {
	failed := func(pkg string, tests ...string) gate.Outcome {
		return gate.Outcome{Package: pkg, Cause: gate.Tests, Failed: tests}
	}
	for title, test := range map[string]struct {
		first   []gate.Outcome
		again   []gate.Rerun
		refused int
	}{
		"all passed":                         {first: []gate.Outcome{{Package: "a"}}},
		"a few tests, these alone":           {first: []gate.Outcome{failed("a", "TestX", "TestY/b")}, again: []gate.Rerun{{"a", []string{"TestX", "TestY/b"}}}},
		"a timeout, the whole package":       {first: []gate.Outcome{{Package: "a", Cause: gate.Timeout, Failed: []string{"TestX"}}}, again: []gate.Rerun{{Package: "a"}}},
		"no failed test, the whole package":  {first: []gate.Outcome{{Package: "a", Cause: gate.NoTest}}, again: []gate.Rerun{{Package: "a"}}},
		"eleven tests, the whole package":    {first: []gate.Outcome{failed("a", names(11)...)}, again: []gate.Rerun{{Package: "a"}}},
		"eleven tests of each of two":        {first: []gate.Outcome{failed("a", names(11)...), failed("b", names(11)...)}, again: []gate.Rerun{{Package: "a"}, {Package: "b"}}, refused: 1},
		"a data race":                        {first: []gate.Outcome{{Package: "a", Cause: gate.DataRace, Failed: []string{"TestX"}}}, refused: 1},
		"a panic, and another's failed test": {first: []gate.Outcome{{Package: "a", Cause: gate.Panic}, failed("b", "TestX")}, again: []gate.Rerun{{"b", []string{"TestX"}}}, refused: 1},
	} {
		t.Run(title, func(t *testing.T) {
			refused, again := gate.Decide(test.first, lenient)
			assert.Equal(t, test.again, again)
			assert.Len(t, refused, test.refused)
		})
	}
}

func TestWhatAnotherRunMeans(t *testing.T) {
	of := gate.Rerun{Package: "a", Tests: []string{"TestX", "TestY/b"}}
	verdicts, again := gate.Next(of, gate.Outcome{Package: "a", Cause: gate.Tests, Failed: []string{"TestY"}, Good: []string{"TestX"}}, 1, lenient)
	assert.Equal(t, []gate.Verdict{{Package: "a", Test: "TestX", Failed: 1, Attempts: 2, Forgiven: true}}, verdicts)
	assert.Equal(t, &gate.Rerun{Package: "a", Tests: []string{"TestY/b"}}, again, "its parent failed: so did it")

	verdicts, again = gate.Next(*again, gate.Outcome{Package: "a", Good: []string{"TestY", "TestY/b"}}, 2, lenient)
	assert.Equal(t, []gate.Verdict{{Package: "a", Test: "TestY/b", Failed: 2, Attempts: 3, Forgiven: true}}, verdicts)
	assert.Nil(t, again)

	second := gate.Rerun{Package: "a", Tests: []string{"TestX/together#01/a"}}
	verdicts, _ = gate.Next(second, gate.Outcome{Package: "a", Good: []string{"TestX/together/a"}}, 1, lenient)
	assert.True(t, verdicts[0].Forgiven, "alone it has another number")
	third := gate.Outcome{Package: "a", Cause: gate.Tests, Good: []string{"TestX/together/a"}, Failed: []string{"TestX/together#02/a"}}
	_, again = gate.Next(second, third, 1, lenient)
	assert.NotNil(t, again, "all of the name must pass")

	verdicts, _ = gate.Next(gate.Rerun{Package: "a", Tests: []string{"TestX/a"}}, gate.Outcome{Package: "a", Good: []string{"TestX"}}, 1, lenient)
	assert.False(t, verdicts[0].Forgiven, "a test that is not there any more has not passed")

	verdicts, _ = gate.Next(gate.Rerun{Package: "a"}, gate.Outcome{Package: "a", Cause: gate.Tests, Failed: []string{"TestX"}}, 1, lenient)
	assert.False(t, verdicts[0].Forgiven, "a whole package has one more run")
}

func TestThePatternIsThatOfAllSubtestsOfTheName(t *testing.T) {
	want := `^TestX(#[0-9]+)?$/^together(#[0-9]+)?$/^issue_#7(#[0-9]+)?$|^TestY(#[0-9]+)?$`
	assert.Equal(t, want, gate.Pattern([]string{"TestX/together#01/issue_#7", "TestY"}))
}

func TestCausesAreRead(t *testing.T) {
	output := func(lines ...string) string {
		var events strings.Builder
		for _, line := range lines {
			fmt.Fprintf(&events, `{"Action":"output","Package":"a","Test":"TestX","Output":%q}`+"\n", line+"\n")
		}
		return events.String() + `{"Action":"fail","Package":"a","Test":"TestX"}` + "\n" + `{"Action":"fail","Package":"a","Elapsed":3.5}`
	}
	for title, test := range map[string]struct {
		events string
		want   gate.Cause
	}{
		"a race":                    {output("==================", "WARNING: DATA RACE", "Write at 0x00c0000140f8 by goroutine 8:"), gate.DataRace},
		"a panic":                   {output("panic: boom [recovered]", "", "goroutine 7 [running]:"), gate.Panic},
		"a panic behind a line":     {output("progress...panic: assignment to entry in nil map", "", "goroutine 7 [running]:"), gate.Panic},
		"a stack trace in a log":    {output("panic: boom", "        goroutine 7 [running]:"), gate.Tests},
		"a word in a log":           {output("panic: no stack trace follows"), gate.Tests},
		"a map written to by two":   {output("fatal error: concurrent map writes", "goroutine 7 [running]:"), gate.Panic},
		"a timeout is no panic":     {output("panic: test timed out after 15m0s", "\trunning tests:", "\t\tTestX (1m)", "goroutine 7 [running]:"), gate.Timeout},
		"a secret":                  {output("never forgiven: a secret is shown by: Event"), gate.NeverForgiven},
		"a failed test":             {output("    x_test.go:1: as always"), gate.Tests},
		"a package that was killed": {`{"Action":"run","Package":"a","Test":"TestX"}`, gate.NoTest},
		"a line that was cut":       {output("") + "\n" + `{"Action":"fa`, gate.Tests},
		"a process that died": {
			strings.Replace(output(""), "\n", "\n"+`{"Action":"run","Package":"a","Test":"TestY"}`+"\n", 1), gate.NoTest,
		},
		"a test that did not begin": {
			`{"Action":"run","Package":"a","Test":"TestY"}` + "\n" + `{"Action":"pause","Package":"a","Test":"TestY"}` + "\n" + output(""), gate.Tests,
		},
		"a stack's process that panicked, in tests that passed": {
			`{"Action":"output","Package":"a","Output":"never forgiven: worker has ended: panic: boom\n"}` + "\n" + `{"Action":"pass","Package":"a"}`,
			gate.NeverForgiven,
		},
		"a look that was not taken": {output(gate.WholeAgain + "search for secrets: the API server is away"), gate.NoTest},
	} {
		t.Run(title, func(t *testing.T) {
			outcomes, err := gate.Outcomes(strings.NewReader(test.events))
			require.NoError(t, err)
			require.Len(t, outcomes, 1)
			assert.Equal(t, test.want, outcomes[0].Cause)
		})
	}
}

// A test that found something itself runs again with all of its subtests, else those do that failed.
func TestWhoseAssertionFailed(t *testing.T) {
	failed := func(tests ...string) (events string) {
		for _, test := range tests {
			events += fmt.Sprintf(`{"Action":"fail","Package":"a","Test":%q}`+"\n", test)
		}
		return events + `{"Action":"fail","Package":"a"}`
	}
	says := func(test, line string) string {
		return fmt.Sprintf(`{"Action":"output","Package":"a","Test":%q,"Output":%q}`+"\n", test, line+"\n")
	}
	trace := func(test string) string {
		return says(test, "    a_test.go:7: ") + says(test, "        \tError Trace:\ta_test.go:7")
	}
	fatal := func(test string) string { return says(test, "    a_test.go:9: 2 of 3 did not come") }
	for title, test := range map[string]struct {
		events string
		want   []string
	}{
		"a subtest's":             {trace("TestX/a/b") + failed("TestX/a/b", "TestX/a", "TestX"), []string{"TestX/a/b"}},
		"a test's, and a subtest": {trace("TestX") + trace("TestX/a") + failed("TestX/a", "TestX", "TestXY"), []string{"TestX", "TestXY"}},
		"one without a trace":     {fatal("TestX") + failed("TestX/a", "TestX"), []string{"TestX"}},
		"one in between":          {trace("TestX/a") + failed("TestX/a/b", "TestX/a", "TestX/c", "TestX"), []string{"TestX/a", "TestX/c"}},
	} {
		t.Run(title, func(t *testing.T) {
			outcomes, err := gate.Outcomes(strings.NewReader(test.events))
			require.NoError(t, err)
			assert.Equal(t, test.want, outcomes[0].Failed)
		})
	}
}

// What is not forgiven to a test is not forgiven to it in a package that runs again whole, either.
func TestTheStrictRulesHoldForWholePackages(t *testing.T) {
	strict := func(_, test string) string {
		if test == "TestNew" {
			return "it is new or changed"
		}
		return ""
	}
	for title, o := range map[string]gate.Outcome{
		"one of many":            {Package: "a", Cause: gate.Tests, Failed: append(names(11), "TestNew")},
		"one that failed":        {Package: "a", Cause: gate.Timeout, Failed: []string{"TestNew"}, Running: []string{"TestX"}},
		"one that hangs":         {Package: "a", Cause: gate.Timeout, Running: []string{"TestNew"}},
		"one that ran at an end": {Package: "a", Cause: gate.NoTest, Running: []string{"TestX", "TestNew"}},
	} {
		t.Run(title, func(t *testing.T) {
			refused, again := gate.Decide([]gate.Outcome{o}, strict)
			assert.Len(t, refused, 1)
			assert.Empty(t, again)
		})
	}
	whole := gate.Run{Seconds: map[string]float64{e2e: 1}, Failed: []gate.Entry{{Package: e2e, Forgiven: true}}}
	often := gate.Strictness(nil, nil, []gate.Run{whole, whole, whole}, time.Now())
	refused, _ := gate.Decide([]gate.Outcome{{Package: e2e, Cause: gate.NoTest}}, often)
	assert.Len(t, refused, 1, "a package that needs a second run each time")
}

// A result of the cache says nothing about how often a package fails.
func TestWhatWasCachedDidNotRun(t *testing.T) {
	events := `{"Action":"output","Package":"a","Output":"ok  \ta\t(cached)\n"}` + "\n" + `{"Action":"pass","Package":"a","Elapsed":0}`
	outcomes, err := gate.Outcomes(strings.NewReader(events))
	require.NoError(t, err)
	assert.Equal(t, []gate.Outcome{{Package: "a", Cached: true}}, outcomes)
}

func TestForgivenessEnds(t *testing.T) {
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	run := func(test string, forgiven bool) gate.Run {
		run := gate.Run{Seconds: map[string]float64{e2e: 1}}
		if test != "" {
			run.Failed = []gate.Entry{{Package: e2e, Test: test, Forgiven: forgiven}}
		}
		return run
	}
	elsewhere := gate.Run{Seconds: map[string]float64{"other": 1}}
	runs := []gate.Run{run("TestOld", true), run("TestOld", true), run("TestX/a", true), run("TestX/b", true), elsewhere, run("TestX/c", true)}
	for range 7 {
		runs = append(runs, run("", false), elsewhere)
	}
	strict := gate.Strictness(nil, []gate.Flake{
		{Package: "test/e2e", Test: "TestPast", Expires: now.Add(-48 * time.Hour)},
		{Package: "test/e2e", Test: "TestToday", Expires: now.Truncate(24 * time.Hour)},
	}, runs, now)
	assert.Contains(t, strict(e2e, "TestX/d"), "forgiven in 3 of the last 10 runs")
	assert.Empty(t, strict(e2e, "TestOld"), "of older runs")
	assert.Contains(t, strict(e2e, "TestPast/a"), "until 2026-11-25")
	assert.Empty(t, strict(e2e, "TestToday"), "its last day is not over")
}

func TestTheListOfFlakesIsChecked(t *testing.T) {
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	const good = "test/e2e TestX | Velero takes a Backup up twice | 2026-12-05\n"
	flakes, err := gate.ReadFlakes("# a comment\n\n"+good, now)
	require.NoError(t, err)
	require.Len(t, flakes, 1)
	assert.Equal(t, "TestX", flakes[0].Test)
	for text, want := range map[string]string{
		"test/e2e TestX | 2026-12-05":              "must be FOLDER TEST",
		"TestX | cause | 2026-12-05":               "the package's folder and a test function",
		"test/e2e TestX/case | cause | 2026-12-05": "a test function",
		"test/e2e TestX | | 2026-12-05":            "no suspected cause",
		"test/e2e TestX | cause | soon":            "parsing time",
		"test/e2e TestX | cause | 2026-12-12":      "more than 14 days",
		strings.Repeat(good, 9):                    "9 lines, at most 8",
	} {
		_, err := gate.ReadFlakes(text, now)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestChangedTestsAreFound(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) string {
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@a"}, args...)...)
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		return string(output)
	}
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	t.Setenv("HOLDFAST_LANDED", "")
	git("init", "-q")
	write("a/a_test.go", "package a\n\nfunc TestKept(t *testing.T) { one() }\n\nfunc TestChanged(t *testing.T) { one() }\n\nfunc TestMoved(t *testing.T) {\n\tone()\n}\n")
	git("add", ".")
	git("commit", "-qm", "a")
	write("a/a_test.go", "package a\n\n// Of course.\nfunc TestKept(t *testing.T) { one() /* once */ }\n\nfunc TestChanged(t *testing.T) { two() }\n")
	write("c/c_test.go", "package c\n\nfunc FuzzNew(f *testing.F) {}\n")
	write("b/b_test.go", "package b\n\nfunc TestMoved(t *testing.T) {\n\tone()\n}\n\nfunc TestNew(t *testing.T) {}\n\nfunc helper() {}\n")
	git("add", "a", "b") // c is not tracked
	changed, err := gate.Changed(t.Context(), root, "HEAD")
	require.NoError(t, err)
	assert.Equal(t, map[string][]string{"a": {"TestChanged"}, "b": {"TestNew"}, "c": {"FuzzNew"}}, changed)
	assert.True(t, gate.ChangedSince(t.Context(), root, "HEAD", "b", "c"))
	assert.False(t, gate.ChangedSince(t.Context(), root, "HEAD", "d"))
	assert.Empty(t, gate.Landed(t.Context(), root, nil), "no commit is four hours old")
	first := strings.TrimSpace(git("rev-parse", "HEAD"))
	git("branch", "-M", "main")
	git("commit", "-q", "--allow-empty", "-m", "second")
	assert.Empty(t, gate.Landed(t.Context(), root, []gate.Run{{Commit: first, Stage: gate.Stacks}}), "one stage has passed there")
	assert.Equal(t, first, gate.Landed(t.Context(), root, []gate.Run{{Commit: first, Stage: gate.Whole}}), "all stages have")
	git("switch", "-qc", "work")
	git("commit", "-q", "--allow-empty", "-m", "third")
	assert.Equal(t, strings.TrimSpace(git("rev-parse", "main")), gate.Landed(t.Context(), root, nil), "where the branch left")
	t.Setenv("HOLDFAST_LANDED", "named")
	assert.Equal(t, "named", gate.Landed(t.Context(), root, nil))
}

func TestRatesHaveTheirBounds(t *testing.T) {
	low, high := gate.Bounds(2, 10)
	assert.InDelta(t, 0.057, low, 0.001)
	assert.InDelta(t, 0.510, high, 0.001)
	low, high = gate.Bounds(0, 30)
	assert.Zero(t, low)
	assert.InDelta(t, 0.114, high, 0.001)
}

func TestTheLedgerShowsRates(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "gate")
	ledger := gate.OpenLedger(folder)
	for i, commit := range []string{"aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc", "dddddddddd"} {
		run := gate.Run{Time: time.Unix(int64(i), 0), Commit: commit, Load: float64(i), Seconds: map[string]float64{e2e: 1}}
		if i > 1 {
			run.Failed = []gate.Entry{{Package: e2e, Test: "TestX/a", Failed: 1, Attempts: 2, Forgiven: true, Load: 3, Log: "the.log"}}
		}
		require.NoError(t, ledger.Add(run))
		cut, err := os.OpenFile(filepath.Join(folder, "ledger.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = cut.WriteString(`{"time":"20`) // by a kill
		require.NoError(t, err)
		require.NoError(t, cut.Close())
	}
	runs, err := ledger.Runs()
	require.NoError(t, err)
	var out bytes.Buffer
	gate.Rates(&out, runs)
	assert.Regexp(t, `test/e2e TestX +2 of 4 +15 to 85 % +ccccccccc +ddddddddd +0 of 2 +2 of 2`, out.String())
	out.Reset()
	gate.Last(&out, runs, 1)
	assert.Contains(t, out.String(), "ddddddddd forgiven test/e2e TestX/a, failed 1 of 2, load 3")
	assert.NotContains(t, out.String(), "ccccccccc")
}

func TestStacksMarkWhatIsNeverForgivenAsTheGateReadsIt(t *testing.T) {
	assert.Equal(t, env.NeverForgiven, gate.Unforgivable)
	assert.Equal(t, env.WholeAgain, gate.WholeAgain)
}
