package tools

import (
	"context"
	"strconv"
	"time"

	"holdfast.dev/holdfast/activities/fdbtool"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// rehearse has the tools read the arguments of the start, write where it is to write, and compare the clock with the last start.
// What takes so long that the abort would not have its time any more is not found out.
func (a *attempt) rehearse(ctx context.Context) *contract.FDBFailure {
	if deadline, limited := ctx.Deadline(); limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-fdbtool.ChangeLimit-fdbtool.CheckReserve))
		defer cancel()
	}
	if trouble := a.rehearseAll(ctx); ctx.Err() == nil {
		return trouble
	}
	return nil
}

func (a *attempt) rehearseAll(ctx context.Context) *contract.FDBFailure {
	described := a.described()
	described.URL, described.Tag = a.command.Next, a.desired.Tag
	_, trouble := a.Run(ctx, fdbtool.DryStart, a.method.DryStart(described))
	if trouble != nil && trouble.Class != contract.FDBClassAlreadyRunning { // on the tag: the arguments are read before that
		return trouble
	}
	_, trouble = a.Run(ctx, fdbtool.DryWrite, a.method.DryWrite(a.command.Next, a.command.Tag))
	if trouble != nil && trouble.Class != contract.FDBClassNotRunning { // with that UID: the container is made before that
		return trouble
	}
	limit := strconv.Itoa(int(fdbtool.AnswerLimit.Seconds()))
	answer, trouble := a.Run(ctx, fdbtool.LastStart, []string{"--exec", fdb.LastStartQuery, "--timeout", limit})
	if trouble != nil {
		return nil // fdbcli may not be there, which backups do not need
	}
	return fdb.FutureStart(answer, time.Now())
}
