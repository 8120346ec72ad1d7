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
