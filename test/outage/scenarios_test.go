package outage_test

import "github.com/stretchr/testify/assert"

// scenario is a piece of a tenant's life. A capability joins the kill matrix by adding one: everything else is generic.
type scenario struct {
	name string
	// before brings the case to where the scenario begins; nothing is disturbed yet.
	before func(*testCase)
	// act is what the tenant does.
	act func(*testCase)
	// wish says how it ends, done tells whether it has.
	wish string
	done func(*testCase) bool
	// check looks at what an undisturbed run has left.
	check func(*testCase, effects)
}

var scenarios = []scenario{
	{
		name:   "create",
		before: func(*testCase) {},
		act:    (*testCase).backUp,
		wish:   "Completed",
		done:   (*testCase).completed,
		check: func(c *testCase, e effects) {
			assert.Len(c.t, e.Backups, 1)
			assert.NotEmpty(c.t, e.Files)
			assert.Equal(c.t, []string{"create backups NAMESPACE-nightly-UUID", "patch nonadminbackups nightly"}, e.Writes)
		},
	},
	{
		name:   "delete with the data",
		before: backedUp,
		act:    func(c *testCase) { c.patch(`{"spec":{"deleteBackup":true}}`) },
		wish:   "gone",
		done:   (*testCase).gone,
		check: func(c *testCase, e effects) {
			assert.Equal(c.t, effects{Writes: e.Writes}, e, "nothing is left in cluster or bucket")
			assert.Contains(c.t, e.Writes, "create deletebackuprequests NAMESPACE-nightly-UUID-1")
		},
	},
	{
		name:   "delete by force",
		before: backedUp,
		act:    func(c *testCase) { c.patch(`{"spec":{"forceDeleteBackup":true}}`) },
		wish:   "gone",
		done:   (*testCase).gone,
		check: func(c *testCase, e effects) {
			assert.Empty(c.t, e.Object)
			assert.NotEmpty(c.t, e.Files, "the data are kept")
		},
	},
}

func backedUp(c *testCase) {
	c.backUp()
	c.await("Completed", c.completed)
}
