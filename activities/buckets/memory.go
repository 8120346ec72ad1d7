package buckets

import (
	"sync"
	"time"
)

// maxRemembered limits what is remembered of backups.
const maxRemembered = 10_000

// memory saves work that would come to the same: it is lost with the process, and nothing depends on it.
type memory struct {
	lock sync.Mutex
	// fails are the times at which locations could not be read.
	fails map[string]time.Time
	// withheld are backups whose files are too large, by what was judged.
	withheld map[string]string
}

func (m *memory) fail(location string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.fails == nil || len(m.fails) >= maxRemembered {
		m.fails = map[string]time.Time{}
	}
	m.fails[location] = time.Now()
}

func (m *memory) failedWithin(location string, last time.Duration) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	at, failed := m.fails[location]
	return failed && time.Since(at) < last
}

func (m *memory) withhold(backup, judged string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.withheld == nil || len(m.withheld) >= maxRemembered {
		m.withheld = map[string]string{}
	}
	m.withheld[backup] = judged
}

func (m *memory) isWithheld(backup, judged string) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.withheld[backup] == judged
}
