package cluster

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	"holdfast.dev/holdfast/workflows/turns"
)

// reasonAgents is why a member of a FoundationDB cluster is told to look.
const reasonAgents = "agents"

// enroll notes what who asks wants of the agents.
func (r *clusterRun) enroll(ask contract.FDBCommandRequest) {
	r.change(func(members []contract.FDBMember) []contract.FDBMember {
		at := slices.IndexFunc(members, func(m contract.FDBMember) bool { return m.WorkflowID == ask.Member.WorkflowID })
		switch {
		case ask.Leave && at >= 0:
			return slices.Delete(members, at, at+1)
		case ask.Leave:
			return members
		case at >= 0:
			members[at] = ask.Member
			return members
		}
		return append(members, ask.Member)
	}, ask.Member.WorkflowID)
}

// change changes the list of members, and notes who is to be told: those whose opposition is another one then, but for the one
// that knows.
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

// opposed are the names of those that want the opposite of what that member wants; nobody opposes who is no member.
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

// wants reports whether that backup is a member and wants that.
func (r *clusterRun) wants(id string, paused bool) bool {
	return slices.ContainsFunc(r.in.Members, func(m contract.FDBMember) bool { return m.WorkflowID == id && m.Paused == paused })
}

// tell tells members to look. One that does not run any more needs no telling, and is pruned if it stands in anybody's way.
func (r *clusterRun) tell(ctx workflow.Context) {
	for len(r.changed) > 0 && ctx.Err() == nil {
		id := r.changed[0]
		r.changed = r.changed[1:]
		look := contract.Changed{Reason: reasonAgents}
		err := workflow.SignalExternalWorkflow(ctx, id, "", contract.SignalChanged, look).Get(ctx, nil)
		if err != nil {
			workflow.GetLogger(ctx).Info("member not told", "member", id, "error", err)
		}
	}
}

// prune removes members that stand in others' way and whose workflow was twice found not to run, at least turns.CensusInterval
// apart: one that is only being started again stays.
func (r *clusterRun) prune(ctx workflow.Context) {
	var ids []string
	for _, member := range r.in.Members {
		if len(r.opposed(member.WorkflowID)) > 0 && !workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			ids = append(ids, member.WorkflowID)
		}
	}
	found := r.census.Advance(ctx, turns.CensusInterval, ids)
	for _, id := range found.Running {
		delete(r.closed, id)
	}
	for _, id := range found.Closed {
		since, known := r.closed[id]
		switch {
		case !known:
			r.closed[id] = workflow.Now(ctx)
		case workflow.Now(ctx).Sub(since) >= turns.CensusInterval:
			delete(r.closed, id)
			r.change(func(members []contract.FDBMember) []contract.FDBMember {
				return slices.DeleteFunc(members, func(m contract.FDBMember) bool { return m.WorkflowID == id })
			}, id)
		}
	}
}

func fdbCommandSummary(command contract.FDBCommand, requester string) string {
	if command.Tag == "" {
		return fmt.Sprintf("%s, for %s", command.Operation, requester)
	}
	return fmt.Sprintf("%s %s, for %s", command.Operation, command.Tag, requester)
}

// show says in Markdown what runs, and what everybody wants.
func (r *clusterRun) show(ctx workflow.Context) {
	text := ""
	switch {
	case r.running != nil:
		text += fmt.Sprintf("**Running** since %s: %s.", details.Stamp(r.begunAt.Unix()),
			details.OneLine(fdbCommandSummary(*r.running, r.requester)))
	case len(r.in.Members) == 0:
		text += fmt.Sprintf("**Nothing to do:** ends at %s if nobody asks.", details.Stamp(r.heardAt.Add(FDBClusterIdle).Unix()))
	default:
		text += "**Waiting** for backups to ask for something."
	}
	if waiting := r.waiting(); waiting > 0 {
		text += fmt.Sprintf(" %d more wait for their turn.", waiting)
	}
	text += "\n"
	heading := "The agents of a cluster are paused for all of its backups or for none. What they want:"
	text += turns.Listed(heading, r.in.Members, len(r.in.Members),
		func(member contract.FDBMember) string {
			if member.Paused {
				return "- " + details.OneLine(member.Name) + ": paused"
			}
			return "- " + details.OneLine(member.Name) + ": running"
		})
	if disagree(r.in.Members) {
		text += "\n**They disagree:** the agents are not paused until all want it.\n"
	}
	workflow.SetCurrentDetails(ctx, text)
}

func disagree(members []contract.FDBMember) bool {
	return slices.ContainsFunc(members, func(m contract.FDBMember) bool { return m.Paused != members[0].Paused })
}
