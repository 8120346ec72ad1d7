package cluster

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	"holdfast.dev/holdfast/workflows/turns"
)

// reasonAgents is the reason in the signal to a member of a FoundationDB cluster.
const reasonAgents = "agents"

// enroll notes what the requester wants of the agents.
func (r *clusterRun) enroll(request contract.FDBCommandRequest) {
	r.change(func(members []contract.FDBMember) []contract.FDBMember {
		at := slices.IndexFunc(members, func(m contract.FDBMember) bool { return m.WorkflowID == request.Member.WorkflowID })
		switch {
		case request.Leave && at >= 0:
			return slices.Delete(members, at, at+1)
		case request.Leave:
			return members
		case at >= 0:
			members[at] = request.Member
			return members
		}
		return append(members, request.Member)
	}, request.Member.WorkflowID)
}

// change changes the list of members, and notes whom to signal: members whose opponents are others now, except the member that
// gets an answer anyway.
func (r *clusterRun) change(do func([]contract.FDBMember) []contract.FDBMember, knows string) {
	before := map[string][]string{}
	for _, member := range r.in.Members {
		before[member.WorkflowID] = r.opposed(member.WorkflowID)
	}
	r.in.Members = do(r.in.Members)
	for _, member := range r.in.Members {
		id := member.WorkflowID
		if id != knows && !slices.Equal(before[id], r.opposed(id)) && !slices.Contains(r.changed, id) {
			r.changed = append(r.changed, id)
		}
	}
}

// opposed returns the names of the members that want the opposite of what that member wants; none if it is no member.
func (r *clusterRun) opposed(id string) []string {
	at := slices.IndexFunc(r.in.Members, func(m contract.FDBMember) bool { return m.WorkflowID == id })
	if at < 0 {
		return nil
	}
	var names []string
	for _, other := range r.in.Members {
		if other.Paused != r.in.Members[at].Paused {
			names = append(names, other.Name)
		}
	}
	return names
}

// wants reports whether that backup is a member and wants the agents paused, or running.
func (r *clusterRun) wants(id string, paused bool) bool {
	return slices.ContainsFunc(r.in.Members, func(m contract.FDBMember) bool { return m.WorkflowID == id && m.Paused == paused })
}

// signalChanged signals the changed members. If one does not run any more it is pruned once it is in another's way.
func (r *clusterRun) signalChanged(ctx workflow.Context) {
	for len(r.changed) > 0 && ctx.Err() == nil {
		id := r.changed[0]
		r.changed = r.changed[1:]
		changed := contract.Changed{Reason: reasonAgents}
		err := workflow.SignalExternalWorkflow(ctx, id, "", contract.SignalChanged, changed).Get(ctx, nil)
		if err != nil {
			workflow.GetLogger(ctx).Info("member not signalled", "member", id, "error", err)
		}
	}
}

// prune removes members that are in others' way and whose workflow was twice found not to run, at least turns.CensusInterval
// apart: a workflow that is just being started again stays a member.
func (r *clusterRun) prune(ctx workflow.Context) {
	var ids []string
	for _, member := range r.in.Members {
		if len(r.opposed(member.WorkflowID)) > 0 && !workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			ids = append(ids, member.WorkflowID)
		}
	}
	_, gone := r.census.Gone(ctx, turns.CensusInterval, ids)
	for _, id := range gone {
		r.change(func(members []contract.FDBMember) []contract.FDBMember {
			return slices.DeleteFunc(members, func(m contract.FDBMember) bool { return m.WorkflowID == id })
		}, id)
	}
}

func fdbCommandSummary(command contract.FDBCommand, requester string) string {
	if command.Tag == "" {
		return fmt.Sprintf("%s, for %s", command.Operation, requester)
	}
	return fmt.Sprintf("%s %s, for %s", command.Operation, command.Tag, requester)
}

// show shows in Markdown what runs, and what all members want.
func (r *clusterRun) show(ctx workflow.Context) {
	text := ""
	switch {
	case r.running != nil:
		text += fmt.Sprintf("**Running** since %s: %s.", details.Stamp(r.begunAt.Unix()),
			details.OneLine(fdbCommandSummary(*r.running, r.requester)))
	case len(r.in.Members) == 0:
		text += fmt.Sprintf("**Idle:** ends at %s unless a request arrives.",
			details.Stamp(r.lastRequest.Add(FDBClusterIdle).Unix()))
	default:
		text += "**Waiting** for requests from backups."
	}
	if waiting := r.waiting(); waiting > 0 {
		text += fmt.Sprintf(" Commands waiting: %d.", waiting)
	}
	text += "\n"
	heading := "The agents of a cluster pause for all of its backups or for none. The backups request:"
	text += turns.Listed(heading, r.in.Members, len(r.in.Members),
		func(member contract.FDBMember) string {
			if member.Paused {
				return "- " + details.OneLine(member.Name) + ": paused"
			}
			return "- " + details.OneLine(member.Name) + ": running"
		})
	if disagree(r.in.Members) {
		text += "\n**They disagree:** the agents pause only when all request it.\n"
	}
	workflow.SetCurrentDetails(ctx, text)
}

func disagree(members []contract.FDBMember) bool {
	return slices.ContainsFunc(members, func(m contract.FDBMember) bool { return m.Paused != members[0].Paused })
}
