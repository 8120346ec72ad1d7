package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"os"

	"holdfast.dev/holdfast/test/env"
)

// wholeSuite reports whether every test has run: only then is a right that nobody used superfluous.
func wholeSuite() bool {
	return flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" &&
		flag.Lookup("test.list").Value.String() == ""
}

// unusedHere are rights for what cannot happen in these tests.
var unusedHere = map[string]string{
	"holdfast-worker patch events.k8s.io/events":  "an Event that repeats itself for six minutes",
	"holdfast-watcher patch events.k8s.io/events": "an Event that repeats itself for six minutes",

	"holdfast-worker get holdfast.dev/restoredrills":          "test/drills has drills, and checks these rights",
	"holdfast-worker list holdfast.dev/restoredrills":         "as the one above",
	"holdfast-worker patch holdfast.dev/restoredrills/status": "as the one above",
	"holdfast-worker list /events":                            "as the one above",
	"holdfast-worker list /persistentvolumes":                 "as the one above",

	"holdfast-worker manage-default holdfast.dev/backupplans": "ValidatingAdmissionPolicy holdfast-default-plans checks it",
}

// checkRights looks for rights that are missing or, where all tests have run, superfluous. Those for FoundationDB are test/fdb's.
// It returns the exit status.
func checkRights(ctx context.Context) int {
	wrong, err := stack.CheckRights(ctx, func(right env.Right) bool {
		return wholeSuite() && unusedHere[right.String()] == "" && !right.ForFoundationDB()
	})
	if err != nil {
		wrong = append(wrong, env.WholeAgain+err.Error())
	}
	for _, line := range wrong {
		fmt.Fprintln(os.Stderr, line) // a missing right begins with env.NeverForgiven
	}
	return min(len(wrong), 1)
}
