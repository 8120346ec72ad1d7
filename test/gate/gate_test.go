package gate_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/gate"
	"holdfast.dev/holdfast/test/tools"
)

// lenient forgives every test.
func lenient(string, string) string { return "" }

// suite runs packages of testdata/suite through the gate, by the real gotestsum and go.
func suite(t *testing.T, change func(*gate.Stage), packages ...string) (gate.Result, string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds gotestsum (-short)")
	}
	gotestsum, err := tools.Path(t.Context(), tools.Gotestsum)
	require.NoError(t, err)
	dir, err := filepath.Abs("testdata/suite")
	require.NoError(t, err)
	var out bytes.Buffer
	goTest := gate.GoTest{
		Gotestsum: gotestsum, Dir: dir, Logs: t.TempDir(), Out: &out,
		Env: []string{"SUITE_STATE=" + t.TempDir(), "GOFLAGS=", "CGO_ENABLED=0"},
	}
	stage := gate.Stage{Name: "suite", Lanes: 1, Forgive: true, Strict: lenient, Run: goTest.Run, LogOf: goTest.LogOf, Out: &out}
	for _, name := range packages {
		stage.Jobs = append(stage.Jobs, gate.Job{
			Name: name, Packages: []string{"suite.example/" + name}, Fresh: true, Timeout: time.Minute,
		})
	}
	if change != nil {
		change(&stage)
	}
	result, err := stage.Go(t.Context())
	require.NoError(t, err)
	gate.Report(&out, "suite", result)
	return result, out.String()
}

func TestWhatPassesIsNotRefused(t *testing.T) {
	result, said := suite(t, nil, "good")
	assert.Empty(t, result.Refused)
	assert.Empty(t, result.Verdicts)
	assert.Contains(t, said, "1 passed, 0 failed, 1 skipped\n")
	assert.Contains(t, said, "\nwarning: too long\n")
	assert.NotContains(t, said, "FLAKES")
}

func TestATestThatAlwaysFailsIsRefused(t *testing.T) {
	result, said := suite(t, nil, "good", "fails")
	require.Len(t, result.Refused, 1)
	assert.Contains(t, result.Refused[0], "TestAlwaysFails/another_case_(of_two): failed 3 times")
	assert.Equal(t, 2, strings.Count(said, "== again, alone: suite.example/fails: TestAlwaysFails/another_case_(of_two)"))
	require.Len(t, result.Verdicts, 1)
	assert.Equal(t, 3, result.Verdicts[0].Failed)
	assert.FileExists(t, result.Verdicts[0].Log)
}

func TestAFlakeLandsAndIsPrintedLast(t *testing.T) {
	result, said := suite(t, nil, "flaky", "good")
	assert.Empty(t, result.Refused)
	assert.Len(t, result.Verdicts, 3, "each subtest is one, also with a name that patterns give a meaning: %v", result.Verdicts)
	lines := strings.Split(strings.TrimSpace(said), "\n")
	last := lines[len(lines)-1]
	assert.True(t, strings.HasPrefix(last, "FLAKES 3 of 5: "), last)
	assert.Contains(t, last, "TestAlsoFlaky, failed 1 of 2, load ")
}

func TestNothingIsForgivenIfNothingMayBe(t *testing.T) {
	result, said := suite(t, func(s *gate.Stage) { s.Forgive = false }, "flaky")
	assert.NotEmpty(t, result.Refused)
	assert.NotContains(t, said, "== again")
}

func TestANewTestThatFailsOnceIsRefused(t *testing.T) {
	result, said := suite(t, func(s *gate.Stage) {
		s.Strict = gate.Strictness(map[string][]string{"suite.example/flaky": {"TestAlsoFlaky"}}, nil, nil, time.Now())
	}, "flaky")
	require.Len(t, result.Refused, 1)
	assert.Contains(t, result.Refused[0], "TestAlsoFlaky failed: it is new or changed")
	assert.NotContains(t, said, "== again")
}

func TestANewTestRunsThreeTimes(t *testing.T) {
	var passed []string
	jobs := func(s *gate.Stage) {
		s.Passed = func(o gate.Outcome) error {
			passed = append(passed, o.Package)
			return nil
		}
		s.Repeats = gate.Repeats(s.Jobs, map[string][]string{"suite.example/good": {"TestGood"}, "suite.example/fails": {"TestAlwaysFails"}})
		s.Jobs = s.Jobs[:1] // fails is run by its repeats alone
	}
	result, _ := suite(t, jobs, "good", "fails")
	require.Len(t, result.Refused, 2)
	assert.Contains(t, result.Refused[0], "suite.example/fails: new or changed tests must pass three times")
	assert.Equal(t, []string{"suite.example/good"}, passed, "once, after its three runs")
}

func TestOfSlowMomentsThatNeverPassNoneIsForgiven(t *testing.T) {
	for name, want := range map[string]string{
		"panics": "panic: panic: assignment to entry in nil map",
		"broken": "it does not build",
		"rights": "missing right: holdfast-worker get /secrets",
	} {
		t.Run(name, func(t *testing.T) {
			result, said := suite(t, nil, name)
			require.NotEmpty(t, result.Refused)
			assert.Contains(t, result.Refused[0], want)
			assert.NotContains(t, said, "== again")
		})
	}
}

func TestAStackThatDoesNotStartIsTriedOnceMore(t *testing.T) {
	result, said := suite(t, nil, "starts")
	require.Len(t, result.Refused, 1)
	assert.Contains(t, result.Refused[0], "again: it failed without a failed test")
	assert.Equal(t, 1, strings.Count(said, "== again, alone: suite.example/starts, whole"))
}

func TestAHangEndsAfterItsLimitAndNamesTheTest(t *testing.T) {
	result, _ := suite(t, func(s *gate.Stage) { s.Jobs[0].Timeout = 2 * time.Second }, "hangs")
	require.Len(t, result.Refused, 1)
	assert.Contains(t, result.Refused[0], "test timed out after 2s TestHangs")
}

func TestAStageThatIsStoppedNamesWhatRan(t *testing.T) {
	begun, passed := make(chan struct{}), []string{}
	ctx, cancel := context.WithCancel(t.Context())
	stage := gate.Stage{
		Name: "stacks", Lanes: 1, Jobs: []gate.Job{{Name: "rebuild"}, {Name: "e2e"}},
		Passed: func(o gate.Outcome) error {
			passed = append(passed, o.Package)
			return nil
		},
		Run: func(ctx context.Context, job gate.Job) ([]gate.Outcome, error) {
			if job.Name == "rebuild" {
				return []gate.Outcome{{Package: "rebuild"}}, nil
			}
			close(begun)
			<-ctx.Done()
			return gate.Outcomes(strings.NewReader(`{"Action":"run","Package":"holdfast.dev/holdfast/test/e2e","Test":"TestSlow"}`))
		},
	}
	go func() { <-begun; cancel() }()
	_, err := stage.Go(ctx)
	require.ErrorContains(t, err, "test/e2e: it was ended while these ran: TestSlow")
	assert.Equal(t, []string{"rebuild"}, passed, "what has passed is shown")
}

func TestLogsStayWhereATestFailed(t *testing.T) {
	result, _ := suite(t, nil, "flaky", "good")
	require.NotEmpty(t, result.Verdicts)
	content, err := os.ReadFile(result.Verdicts[0].Log)
	require.NoError(t, err)
	assert.Contains(t, string(content), "a slow moment")
}
