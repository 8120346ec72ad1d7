package fdb_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/fdb"
)

var someBase = fdb.Destination{Account: "lab", Host: "h", Port: "7070", Bucket: "bbb", Path: "team/orders", Parameters: []string{"sc=0"}}

func TestTheTimeOfAStartIsAddedToThePath(t *testing.T) {
	at := time.Date(2026, 7, 20, 23, 30, 5, 999, time.FixedZone("somewhere", 2*60*60))
	for title, test := range map[string]struct{ format, want string }{
		"the default":            {fdb.DefaultTimestampFormat, "team/orders-2026-07-20T21-30-05Z"},
		"none":                   {"", "team/orders"},
		"a folder for each":      {"/2006/01/02/150405", "team/orders/2026/07/20/213005"},
		"the name of the zone":   {"-20060102T150405-MST", "team/orders-20260720T213005-UTC"},
		"parts of a second":      {"-2006-01-02T15-04-05.000Z", "team/orders-2026-07-20T21-30-05.000Z"},
		"a day of the week":      {"-Mon-2006-01-02-15", "team/orders-Mon-2026-07-20-21"},
		"a zone that UTC has as": {"-2006-01-02T150405Z0700", "team/orders-2026-07-20T213005Z"},
	} {
		t.Run(title, func(t *testing.T) {
			started, err := someBase.At(test.format, at)
			require.NoError(t, err)
			assert.Equal(t, test.want, started.Path)
			assert.True(t, started.StartedFrom(someBase, test.format))
			assert.Equal(t, "team/orders", someBase.Path, "the base has been changed")
			assert.Equal(t, someBase.Parameters, started.Parameters)
		})
	}
}

func TestAFormatWhoseTimesCannotBeUsedIsRefused(t *testing.T) {
	at := time.Date(2026, 7, 20, 21, 30, 5, 0, time.UTC)
	const characters = ", which FoundationDB does not accept: use only letters, digits, _, -, . and /, and no numeric time zone (times are UTC)"
	for title, test := range map[string]struct{ format, want string }{
		"a format with zone": {"-2006-01-02T15:04:05Z-07:00", `"team/orders-2026-07-20T21:30:05Z+00:00"` + characters},
		"a space":            {" 2006", `"team/orders 2026"` + characters},
		"parameters":         {"?sdk_auth=0&x=2006", `"team/orders?sdk_auth=0&x=2026"` + characters},
		"the folder above":   {"/../2006", `"team/orders/../2026"` + characters},
		"a folder":           {"/2006/", `"team/orders/2026/"` + characters},
	} {
		t.Run(title, func(t *testing.T) {
			_, err := someBase.At(test.format, at)
			var refused *fdb.DestinationError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, "spec.destination.timestampFormat gives the path "+test.want, refused.Message)
		})
	}
}

func TestABackupOfThisDestinationIsKnownByItsPath(t *testing.T) {
	for title, test := range map[string]struct {
		path, format string
		want         bool
	}{
		"the format of the spec":              {"team/orders-2026", "-2006", true},
		"the default format, before a change": {"team/orders-2026-07-20T21-30-05Z", "-2006", true},
		"the default format":                  {"team/orders-2026-07-20T21-30-05Z", fdb.DefaultTimestampFormat, true},
		"no time where none is wanted":        {"team/orders", "", true},
		"no time where one is wanted":         {"team/orders", fdb.DefaultTimestampFormat, false},
		"a time where none is wanted":         {"team/orders-2026-07-20T21-30-05Z", "", false},
		"another backup whose name is longer": {"team/orders-copy-2026-07-20T21-30-05Z", fdb.DefaultTimestampFormat, false},
		"no such time":                        {"team/orders-2026-13-20T21-30-05Z", fdb.DefaultTimestampFormat, false},
		"something after the time":            {"team/orders-2026-07-20T21-30-05Z/x", fdb.DefaultTimestampFormat, false},
		"another path":                        {"team/other-2026-07-20T21-30-05Z", fdb.DefaultTimestampFormat, false},
	} {
		t.Run(title, func(t *testing.T) {
			started := someBase
			started.Path = test.path
			started.Parameters = []string{"modified=1"}
			assert.Equal(t, test.want, started.StartedFrom(someBase, test.format))
		})
	}
	elsewhere := someBase
	elsewhere.Path, elsewhere.Bucket = "team/orders-2026-07-20T21-30-05Z", "ccc"
	assert.False(t, elsewhere.StartedFrom(someBase, fdb.DefaultTimestampFormat))
}

// FuzzAt: at any time, StartedFrom recognizes what At returns, or At refuses the format.
func FuzzAt(f *testing.F) {
	for _, format := range []string{fdb.DefaultTimestampFormat, "", "-2006", "/06/1/2/3-4-5PM", "-Monday-Jan-_2", "-002-Z07", "-.000", "x"} {
		f.Add(format, int64(1_795_190_221))
	}
	f.Fuzz(func(t *testing.T, format string, seconds int64) {
		started, err := someBase.At(format, time.Unix(seconds%(1<<36), 0))
		if err != nil {
			return
		}
		require.True(t, started.StartedFrom(someBase, format))
		again, err := fdb.ParseURL(started.URL())
		require.NoError(t, err)
		require.Equal(t, started, again)
	})
}
