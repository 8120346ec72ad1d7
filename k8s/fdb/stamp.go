package fdb

import (
	"strings"
	"time"
)

// DefaultTimestampFormat is how the time of a start is appended to a path: FoundationDB accepts its characters in a name, and
// sorting by name sorts by time.
const DefaultTimestampFormat = "-2006-01-02T15-04-05Z"

// At returns the destination of a backup that is started at a time: its path ends in the time (UTC) in the given format. It
// refuses, with a *DestinationError, a format whose result FoundationDB would not accept or StartedFrom would not recognize.
func (d Destination) At(format string, at time.Time) (Destination, error) {
	stamp := at.UTC().Format(format)
	if !validPath(d.Path + stamp) {
		return Destination{}, invalid("spec.destination.timestampFormat gives the path %s, which FoundationDB does not accept: use "+
			"only letters, digits, _, -, . and /, and no numeric time zone (times are UTC)", quoted(d.Path+stamp))
	}
	started := d
	started.Path += stamp
	if !started.StartedFrom(d, format) {
		return Destination{}, invalid("spec.destination.timestampFormat gives %s, which cannot be read back as a time: use a format "+
			"like %s", quoted(stamp), DefaultTimestampFormat)
	}
	return started, nil
}

// StartedFrom reports whether d is base with the time of some start, in the given format or in the default one. With an empty
// format there is no time: d is base itself. It ignores parameters, because they may have been modified since.
func (d Destination) StartedFrom(base Destination, format string) bool {
	stamp, isBelow := strings.CutPrefix(d.Path, base.Path)
	base.Path = d.Path
	if !isBelow || !d.SamePlace(base) {
		return false
	}
	if format == "" || stamp == "" {
		return format == "" && stamp == ""
	}
	return isStamp(stamp, format) || isStamp(stamp, DefaultTimestampFormat)
}

func isStamp(stamp, format string) bool {
	_, err := time.Parse(format, stamp)
	return err == nil
}
