package contract

// Activity is an activity as its callers and its worker know it: In goes in, Out comes back. Each may be repeated at any time.
type Activity[In, Out any] struct {
	// Name is the activity's type on the wire.
	Name string
	// Summary is what the Web UI shows of it. Without one the caller says what this call is for, see WithSummary.
	Summary string
}

// WithSummary returns the activity with another summary.
func (a Activity[In, Out]) WithSummary(summary string) Activity[In, Out] {
	a.Summary = summary
	return a
}

// None is the result of an activity that returns nothing but an error.
type None = struct{}

// AnyActivity is an Activity of any types.
type AnyActivity interface{ name() string }

func (a Activity[In, Out]) name() string { return a.Name }

// Names returns the names of activities on the wire.
func Names(activities ...AnyActivity) []string {
	names := make([]string, 0, len(activities))
	for _, activity := range activities {
		names = append(names, activity.name())
	}
	return names
}
