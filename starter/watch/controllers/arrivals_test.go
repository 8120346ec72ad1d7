package controllers

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestWhenARequestCame(t *testing.T) {
	const never = -time.Hour
	tests := map[string]struct {
		noted  []time.Duration // from the start
		looked time.Duration
		want   time.Duration
	}{
		"nobody noted it: a resync":            {looked: time.Minute, want: time.Minute},
		"noted once":                           {noted: []time.Duration{time.Second}, looked: time.Minute, want: time.Second},
		"several events, one look":             {noted: []time.Duration{2 * time.Second, time.Second, 3 * time.Second}, looked: time.Minute, want: time.Second},
		"put off, looked at when due":          {noted: []time.Duration{15 * time.Second}, looked: 15 * time.Second, want: 15 * time.Second},
		"put off, overtaken by another":        {noted: []time.Duration{15 * time.Second, 5 * time.Second}, looked: 6 * time.Second, want: 5 * time.Second},
		"put off, looked at earlier by itself": {noted: []time.Duration{15 * time.Second}, looked: 5 * time.Second, want: 5 * time.Second},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var a arrivals
				started := time.Now()
				a.note(Request{Name: "another"}, arrival{at: started.Add(never)})
				for _, at := range test.noted {
					a.note(Request{Name: "nightly"}, arrival{at: started.Add(at), event: true})
				}
				time.Sleep(test.looked)
				assert.Equal(t, arrival{at: started.Add(test.want), event: len(test.noted) > 0}, a.take(Request{Name: "nightly"}))
				assert.Equal(t, arrival{at: time.Now()}, a.take(Request{Name: "nightly"}), "once")
				assert.Len(t, a.first, 1, "nothing is kept of it")
			})
		})
	}
}

// An event has a head start that a watcher's own request has not.
func TestARequestOfAWatchersOwnHurriesAnEvent(t *testing.T) {
	for _, first := range []bool{true, false} {
		var a arrivals
		at := time.Now()
		a.note(Request{Name: "nightly"}, arrival{at: at, event: first})
		a.note(Request{Name: "nightly"}, arrival{at: at.Add(time.Second), event: !first})
		assert.True(t, a.wait(Request{Name: "nightly"}))
		assert.Equal(t, arrival{at: at}, a.first[Request{Name: "nightly"}])
		a.take(Request{Name: "nightly"})
		assert.False(t, a.wait(Request{Name: "nightly"}))
	}
}
