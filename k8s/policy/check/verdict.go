package check

// Verdict is the result of judging a spec, for the Accepted condition.
type Verdict struct {
	Accepted bool
	Reason   string
	Message  string
}
