package gate

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Load is the machine's load average of the last minute, or 0 where nobody knows.
func Load() float64 {
	var load float64
	if content, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(content), &load)
	}
	return load
}

// stalled is the time since the start for which something waited for a CPU, and whether the kernel says so.
func stalled() (time.Duration, bool) {
	content, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return 0, false
	}
	_, total, found := strings.Cut(string(content), "total=")
	var microseconds int64
	if _, err := fmt.Sscan(total, &microseconds); !found || err != nil {
		return 0, false
	}
	return time.Duration(microseconds) * time.Microsecond, true
}

// Watch measures load and pressure until the function that it returns is called, which says what they were.
func Watch(ctx context.Context) func() (load, pressure float64) {
	ctx, cancel := context.WithCancel(ctx)
	begin := time.Now()
	before, known := stalled()
	sum, count := Load(), 1.0
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(10 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				sum, count = sum+Load(), count+1
			}
		}
	})
	return func() (load, pressure float64) {
		cancel()
		group.Wait()
		if after, _ := stalled(); known {
			pressure = 100 * float64(after-before) / float64(time.Since(begin))
		}
		return sum / count, pressure
	}
}
