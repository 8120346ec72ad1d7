// Package least measures counts that a busy machine makes larger: writes, events, requests. It tries some again; what the product
// does too often it does in each measurement.
//
// Only tests and test/bench import it.
package least

import "maps"

// measurements is how many there are at most.
const measurements = 3

// Counts are the least that up to three measurements have shown, each for itself. The zero value has none.
type Counts[Name comparable] struct {
	least    map[Name]float64
	measured int
}

// Add adds a measurement. What one has not is zero.
func (c *Counts[Name]) Add(counts map[Name]float64) {
	if c.measured++; c.measured == 1 {
		c.least = maps.Clone(counts)
		return
	}
	for name, least := range c.least {
		c.least[name] = min(least, counts[name])
	}
	maps.DeleteFunc(c.least, func(_ Name, least float64) bool { return least == 0 })
}

// Again reports whether another measurement is to be made: there is none yet, or there are fewer than three, and a count is above
// its limit.
func (c *Counts[Name]) Again(limit func(Name) float64) bool {
	if c.measured == 0 {
		return true
	}
	for name, least := range c.least {
		if least > limit(name) {
			return c.measured < measurements
		}
	}
	return false
}

// Measured is how many measurements there are.
func (c *Counts[Name]) Measured() int { return c.measured }

// Least returns the counts, without those that a measurement had not.
func (c *Counts[Name]) Least() map[Name]float64 { return maps.Clone(c.least) }
