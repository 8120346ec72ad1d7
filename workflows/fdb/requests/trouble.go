package requests

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

// Unreachable reports that the database does not answer, or its address is not known. An operator must correct missing tools,
// and aborts that fail or get no turn while the database answers: nothing must be left running for those.
func Unreachable(owner string, trouble *contract.FDBFailure) bool {
	return owner == "" || (trouble != nil && trouble.Class == contract.FDBClassTimeout)
}

// UnreachableSince returns since when that is so, in Unix seconds, given since when it was so before; 0 if it is not.
func UnreachableSince(before int64, owner string, trouble *contract.FDBFailure, now time.Time) int64 {
	if !Unreachable(owner, trouble) {
		return 0
	}
	return cmp.Or(before, now.Unix())
}

// NotStarted describes an activity that no worker has started: Temporal does not say why.
func NotStarted(what, queue string, within time.Duration) string {
	return fmt.Sprintf("no worker picked up %s from task queue %s within %s, and it was not run: either no holdfast-worker with "+
		"--fdb-bin-dir serves that queue ('temporal task-queue describe --task-queue %s' shows which do), or those that do are busy",
		what, queue, within, queue)
}

// FailureOf returns why an activity of the tools' queue has failed, or was never started.
func FailureOf(cluster string, err error) *contract.FDBFailure {
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START {
		return &contract.FDBFailure{Class: contract.FDBClassNoWorker, Message: NotStarted(
			"the inspection of the database", contract.FDBTaskQueue(cluster), PickUp)}
	}
	return &contract.FDBFailure{Class: contract.FDBClassOther, Message: call.Cause(err)}
}
