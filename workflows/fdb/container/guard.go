package container

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	"holdfast.dev/holdfast/workflows/fdb/tools"
)

// guard decides who may do what with a container. Times are in Unix seconds.
type guard struct {
	contract.FDBContainerInput
	// known: somebody has asked before, so that a Use is not the first.
	known bool
	// blamed are those because of whom somebody was refused.
	blamed map[string]bool
}

func fdbUserIn(users []contract.FDBContainerUser, id string) int {
	return slices.IndexFunc(users, func(u contract.FDBContainerUser) bool { return u.WorkflowID == id })
}

// free: nobody uses or holds the container.
func (g *guard) free() bool { return len(g.Users) == 0 && g.Holder == nil }

func (g *guard) settledAt() int64 {
	return g.Since + int64(contract.FDBContainerSettling/time.Second)
}

// pass notes that time has passed: readers that had their time are dropped.
func (g *guard) pass(now int64) {
	g.Settled = g.Settled || now >= g.settledAt()
	g.Users = slices.DeleteFunc(g.Users, func(u contract.FDBContainerUser) bool {
		return u.ReadsUntil != 0 && u.ReadsUntil <= now
	})
}

// firstEnd is when the first of the readers has had its time; 0 if nobody reads.
func (g *guard) firstEnd() int64 {
	var first int64
	for _, user := range g.Users {
		if user.ReadsUntil != 0 && (first == 0 || user.ReadsUntil < first) {
			first = user.ReadsUntil
		}
	}
	return first
}

// take answers an ask. Who asks, runs.
func (g *guard) take(ask contract.FDBContainerRequest, now int64) contract.FDBContainerAnswer {
	first := !g.known
	g.known = true
	delete(g.blamed, ask.User.WorkflowID)
	g.pass(now)
	switch ask.Action {
	case contract.FDBContainerUse:
		g.Settled = g.Settled || (first && ask.Fresh)
		g.enroll(ask.User)
		g.pass(now)
		if g.heldBesides(ask.User.WorkflowID) {
			return contract.FDBContainerAnswer{Busy: g.busyHolder(ask)}
		}
	case contract.FDBContainerLeave:
		if at := fdbUserIn(g.Users, ask.User.WorkflowID); at >= 0 {
			g.Users = slices.Delete(g.Users, at, at+1)
		}
	case contract.FDBContainerRelease:
		if g.Holder != nil && !g.heldBesides(ask.User.WorkflowID) {
			g.Holder = nil
		}
	case contract.FDBContainerExpire, contract.FDBContainerDelete:
		return g.hold(ask, now)
	}
	return contract.FDBContainerAnswer{}
}

func (g *guard) enroll(user contract.FDBContainerUser) {
	user.Since, user.Deletes = 0, false
	if at := fdbUserIn(g.Users, user.WorkflowID); at >= 0 {
		g.Users[at] = user
		return
	}
	g.Users = append(g.Users, user)
}

func (g *guard) heldBesides(id string) bool { return g.Holder != nil && g.Holder.WorkflowID != id }

// hold gives the container to who asks, or says why not. Others who keep their data there are told even while somebody holds it:
// no waiting helps. Who is refused the data of a whole object for them uses the container no more: they delete it.
func (g *guard) hold(ask contract.FDBContainerRequest, now int64) contract.FDBContainerAnswer {
	deletes := ask.Action == contract.FDBContainerDelete
	if g.Holder != nil && g.Holder.WorkflowID == ask.User.WorkflowID && (g.Holder.Deletes || !deletes) {
		return contract.FDBContainerAnswer{Held: true} // whoever came since was told of it
	}
	var others, readers []string
	for _, user := range g.Users {
		name := tools.NameFor(ask.User, user)
		switch {
		case user.ReadsUntil != 0:
			readers = tools.WithName(readers, name)
			g.blamed[user.WorkflowID] = true
		case user.WorkflowID != ask.Of:
			others = tools.WithName(others, name)
		}
	}
	switch {
	case deletes && len(others) > 0:
		if ask.Whole { // at once: another that is being deleted may ask next
			g.Users = slices.DeleteFunc(g.Users, func(u contract.FDBContainerUser) bool {
				return u.WorkflowID == ask.Of && u.ReadsUntil == 0
			})
		}
		return contract.FDBContainerAnswer{Others: others}
	case g.heldBesides(ask.User.WorkflowID):
		g.blamed[g.Holder.WorkflowID] = true
		return contract.FDBContainerAnswer{Busy: g.busyHolder(ask)}
	case len(readers) > 0:
		return contract.FDBContainerAnswer{Busy: "the data are being restored by " + strings.Join(readers, ", ")}
	case deletes && !g.Settled:
		return contract.FDBContainerAnswer{Busy: fmt.Sprintf("nothing is deleted there before %s, so that everybody who uses the data "+
			"has said so", details.Stamp(g.settledAt()))}
	}
	holder := ask.User
	holder.ReadsUntil, holder.Since, holder.Deletes = 0, now, deletes
	g.Holder = &holder
	return contract.FDBContainerAnswer{Held: true}
}

// busyHolder says who holds the container, as far as who asks may know.
func (g *guard) busyHolder(ask contract.FDBContainerRequest) string {
	return fmt.Sprintf("%s %s since %s", tools.NameFor(ask.User, *g.Holder), g.doing(), details.Stamp(g.Holder.Since))
}

func (g *guard) doing() string {
	if g.Holder.Deletes {
		return "deletes the data"
	}
	return "expires the data"
}

// suspects are those that were in somebody's way and may be gone without having said so: the holder, and readers. A backup's data
// are there also when its workflow has ended.
func (g *guard) suspects() []string {
	var ids []string
	if g.Holder != nil && g.blamed[g.Holder.WorkflowID] {
		ids = append(ids, g.Holder.WorkflowID)
	}
	for _, user := range g.Users {
		if user.ReadsUntil != 0 && g.blamed[user.WorkflowID] && !slices.Contains(ids, user.WorkflowID) {
			ids = append(ids, user.WorkflowID)
		}
	}
	return ids
}

// drop forgets one whose workflow is gone.
func (g *guard) drop(id string) {
	delete(g.blamed, id)
	if g.Holder != nil && g.Holder.WorkflowID == id {
		g.Holder = nil
	}
	g.Users = slices.DeleteFunc(g.Users, func(u contract.FDBContainerUser) bool { return u.WorkflowID == id && u.ReadsUntil != 0 })
}
