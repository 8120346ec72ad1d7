package outage

import (
	"errors"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAMeetingActsOnceWhenAllHaveCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var acted, left atomic.Int32
		_, guests := NewMeeting(3, func() error { acted.Add(1); return errors.New("cannot kill") })
		come := func(g *Guest) {
			if g.Come() != nil {
				left.Add(1)
			}
		}
		go come(guests[0])
		go come(guests[1])
		synctest.Wait()
		assert.Zero(t, acted.Load()+left.Load(), "one is missing")
		go come(guests[2])
		synctest.Wait()
		assert.EqualValues(t, 1, acted.Load())
		assert.EqualValues(t, 3, left.Load(), "all are told of the error")
		guests[0].Excuse()
		require.EqualError(t, guests[0].Come(), "cannot kill", "it has come")
		assert.EqualValues(t, 1, acted.Load())
	})
}

func TestAMeetingDoesNotWaitForWhoIsExcused(t *testing.T) {
	acted := 0
	_, guests := NewMeeting(2, func() error { acted++; return nil })
	guests[0].Excuse()
	require.NoError(t, guests[1].Come())
	assert.Equal(t, 1, acted)
}

// alone is set for a process that runs a test alone.
const alone = "HOLDFAST_TEST_ALONE"

// runAlone runs a part of the test again, in a process of its own.
func runAlone(t *testing.T, part string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.timeout=1m", "-test.run=^"+t.Name()+"$"+part)
	command.Env = append(os.Environ(), alone+"=1")
	output, err := command.CombinedOutput()
	return string(output), err
}

// As the gate runs again what has failed.
func TestASubjectThatRunsAloneWaitsForNobody(t *testing.T) {
	if os.Getenv(alone) == "" {
		output, err := runAlone(t, "/^together$/^one$")
		require.NoError(t, err, output)
		return
	}
	come := func(t *testing.T, ready, there *Guest) {
		require.NoError(t, ready.Come())
		require.NoError(t, there.Come())
	}
	acted := 0
	assert.True(t, Together(t, []Subject{{"one", come}, {"another", come}}, func() error { acted++; return nil }))
	assert.Equal(t, 1, acted)
}

func TestMoreSubjectsThanMayRunAtATimeAreRefused(t *testing.T) {
	if os.Getenv(alone) == "" {
		output, err := runAlone(t, "")
		require.Error(t, err)
		assert.Contains(t, output, "-test.parallel: all subjects of one outage must run at a time")
		return
	}
	Together(t, make([]Subject, 100), nil)
}

func TestAMeetingOfNobodyIsOver(t *testing.T) {
	m, guests := NewMeeting(2, func() error { return errors.New("acted") })
	guests[0].Excuse()
	guests[1].Excuse()
	receive(t, m.Held())
	assert.NoError(t, guests[0].Come())
}

func TestSubjectsMeetBeforeAndAtTheirMoment(t *testing.T) {
	var prepared, there, after atomic.Int32
	subject := Subject{"subject", func(t *testing.T, ready, moment *Guest) {
		prepared.Add(1)
		require.NoError(t, ready.Come())
		assert.EqualValues(t, 2, prepared.Load())
		there.Add(1)
		require.NoError(t, moment.Come())
		after.Add(1)
	}}
	absent := Subject{"absent", func(*testing.T, *Guest, *Guest) {}} // it is excused by its end
	assert.True(t, Together(t, []Subject{subject, subject, absent}, func() error {
		assert.EqualValues(t, 2, there.Load())
		assert.Zero(t, after.Load())
		return nil
	}))
	assert.EqualValues(t, 2, after.Load())
	assert.False(t, Together(t, []Subject{absent}, func() error { return errors.New("acted") }))
}
