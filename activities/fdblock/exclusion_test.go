package fdblock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// critical is a section in which only one may be at a time.
type critical struct {
	mutex   sync.Mutex
	inside  map[string]bool
	entered map[string]int
	overlap []string
}

func (c *critical) enter(who string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.inside) > 0 {
		c.overlap = append(c.overlap, fmt.Sprintf("%s beside %v at %s", who, c.inside, time.Now().Format(time.TimeOnly)))
	}
	c.inside[who] = true
	c.entered[who]++
}

func (c *critical) leave(who string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.inside, who)
}

// operator acquires the lock as the FoundationDB operator does: for 10 minutes, without renewing it.
func (c *critical) operator(ctx context.Context, random *rand.Rand, db *memory, who string) {
	h := &handle{memory: db}
	for ctx.Err() == nil {
		time.Sleep(seconds(random, 120))
		err := h.transact(ctx, func(tx transaction) error {
			seen, err := read(tx, who)
			if err != nil {
				return err
			}
			lock, err := grant(seen, who, time.Now(), 10*time.Minute)
			if err == nil {
				tx.write(lock)
			}
			return err
		})
		if err != nil {
			continue
		}
		c.enter(who)
		time.Sleep(seconds(random, 300))
		c.leave(who)
		if random.IntN(3) == 0 {
			continue // it crashed: the lock stays
		}
		_ = h.transact(ctx, func(tx transaction) error {
			if current, _ := tx.lock(); removable(situation{current: current}, who) {
				tx.clear()
			}
			return nil
		})
	}
}

// holdfast acquires the lock again and again, and stops when its context ends.
func (c *critical) holdfast(ctx context.Context, random *rand.Rand, p *process) {
	for ctx.Err() == nil {
		_ = p.locked(ctx, func(ctx context.Context) error {
			c.enter(p.owner)
			defer c.leave(p.owner)
			select {
			case <-time.After(seconds(random, 400)):
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		time.Sleep(seconds(random, 60))
	}
}

// disturb cuts a process off, hides the results of its commits, and denies it the lock.
func disturb(ctx context.Context, random *rand.Rand, db *memory, processes []*process) {
	for ctx.Err() == nil {
		time.Sleep(seconds(random, 60))
		p := processes[random.IntN(len(processes))]
		switch random.IntN(4) {
		case 0:
			p.set(func() { p.cut = true })
			time.Sleep(seconds(random, 300))
			p.set(func() { p.cut = false })
		case 1:
			p.set(func() { p.unknown = 1 + random.IntN(3) })
		case 2:
			p.set(func() { p.mute = 1 + random.IntN(3) })
		case 3:
			db.change(func() { db.deny[p.owner] = db.current == nil || db.current.owner != p.owner })
			time.Sleep(seconds(random, 120))
			db.change(func() { delete(db.deny, p.owner) })
		}
	}
}

func seconds(random *rand.Rand, limit int) time.Duration {
	return time.Duration(random.IntN(limit*1000)) * time.Millisecond
}

// A day of three processes of ours and an operator's, with crashes, outages and commits of unknown result. A denied owner loses
// the lock at once, but learns of it only at its next renewal: so this test does not deny the holder.
func TestNeverTwoAtATime(t *testing.T) {
	days := uint64(8)
	if testing.Short() {
		days = 2
	}
	for seed := range days {
		t.Run(fmt.Sprintf("day %d", seed), func(t *testing.T) {
			db := &memory{deny: map[string]bool{}}
			var processes []*process
			for _, owner := range []string{"holdfast/a/1", "holdfast/a/2", "holdfast/b/1"} {
				processes = append(processes, newProcess(t, db, owner))
			}
			scene := &critical{inside: map[string]bool{}, entered: map[string]int{}}
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				var group sync.WaitGroup
				source := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }
				for n, p := range processes {
					group.Go(func() { scene.holdfast(ctx, source(uint64(n)), p) })
				}
				group.Go(func() { scene.operator(ctx, source(10), db, "kc1") })
				group.Go(func() { disturb(ctx, source(20), db, processes) })
				group.Wait()
			})
			require.Empty(t, scene.overlap)
			for _, who := range []string{"holdfast/a/1", "holdfast/a/2", "holdfast/b/1", "kc1"} {
				assert.Greater(t, scene.entered[who], 3, "%s starved: %v", who, scene.entered)
			}
		})
	}
}
