package tools

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"holdfast.dev/holdfast/workflows/call"
	"holdfast.dev/holdfast/workflows/contract"
)

// NotTaken says what is known of work that no worker has begun: Temporal does not tell why.
func NotTaken(what, queue string, within time.Duration) string {
	return fmt.Sprintf("no worker took %s from task queue %s within %s, and it was not run: either no holdfast-worker with "+
		"--fdb-bin-dir serves that queue ('temporal task-queue describe --task-queue %s' shows who does), or those that do are busy",
		what, queue, within, queue)
}

// FailureOf says why an activity of the tools' queue has failed, or never began.
func FailureOf(cluster string, err error) *contract.FDBFailure {
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START {
		return &contract.FDBFailure{Class: contract.FDBClassNoWorker, Message: NotTaken(
			"the look at the database", contract.FDBTaskQueue(cluster), PickUp)}
	}
	return &contract.FDBFailure{Class: contract.FDBClassOther, Message: call.Cause(err)}
}
