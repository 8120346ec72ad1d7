package outage

import (
	"flag"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Meeting is where several cases wait for each other: when the last one has come something is done once, and all go on.
type Meeting struct {
	action Action
	held   chan struct{}

	mutex   sync.Mutex
	missing int
	came    bool
	err     error
}

// NewMeeting returns a meeting and its guests. Without anything to do its action is nil.
func NewMeeting(guests int, action Action) (*Meeting, []*Guest) {
	m := &Meeting{action: action, held: make(chan struct{}), missing: guests}
	all := make([]*Guest, guests)
	for i := range all {
		all[i] = &Guest{meeting: m}
	}
	return m, all
}

// Held is closed when nobody is waited for any more, and what was to be done is done.
func (m *Meeting) Held() <-chan struct{} { return m.held }

func (m *Meeting) note(came bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.came = m.came || came
	if m.missing--; m.missing > 0 {
		return
	}
	if m.came && m.action != nil {
		m.err = m.action()
	}
	close(m.held)
}

// comePatience is for a guest that neither comes nor is excused: each one's own waits have a limit.
const comePatience = 10 * time.Minute

// Guest is one of those that a meeting waits for.
type Guest struct {
	meeting *Meeting
	once    sync.Once
}

// Come is an Action: it waits until the others have come and it is done, and returns the error of that.
func (g *Guest) Come() error {
	g.once.Do(func() { g.meeting.note(true) })
	select {
	case <-g.meeting.held:
		return g.meeting.err
	case <-time.After(comePatience):
		return fmt.Errorf("not all of the others have come within %s", comePatience)
	}
}

// Excuse has the others not wait for a guest; it changes nothing for one that has come. Without any guest nothing is done.
func (g *Guest) Excuse() { g.once.Do(func() { g.meeting.note(false) }) }

// Held is that of the meeting.
func (g *Guest) Held() <-chan struct{} { return g.meeting.held }

// Subject is one of several cases that are disturbed together. Run comes to ready when all is prepared, so that none stands at
// its moment for as long as another one's preparation takes, and comes there at its moment.
type Subject struct {
	Name string
	Run  func(t *testing.T, ready, there *Guest)
}

// Together runs subjects side by side and takes the action once, when all are at their moments. It reports whether it came to
// that. As many tests as there are subjects must be allowed to run at a time.
func Together(t *testing.T, subjects []Subject, action Action) (happened bool) {
	t.Helper()
	requireRoomFor(t, len(subjects))
	_, ready := NewMeeting(len(subjects), nil)
	meeting, there := NewMeeting(len(subjects), action)
	t.Run("together", func(t *testing.T) {
		for i, s := range subjects {
			began := false
			t.Run(s.Name, func(t *testing.T) {
				began = true
				t.Parallel()
				t.Cleanup(there[i].Excuse) // the others go on if this one fails
				t.Cleanup(ready[i].Excuse)
				s.Run(t, ready[i], there[i])
			})
			if !began { // -run has chosen others
				ready[i].Excuse()
				there[i].Excuse()
			}
		}
	})
	return meeting.came
}

// requireRoomFor fails if fewer tests may run at a time than wait for each other: the last would never begin.
func requireRoomFor(t *testing.T, subjects int) {
	t.Helper()
	parallel, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String())
	require.NoError(t, err)
	require.GreaterOrEqual(t, parallel, subjects, "-test.parallel: all subjects of one outage must run at a time")
}
