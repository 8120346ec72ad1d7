package container

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/details"
	"holdfast.dev/holdfast/workflows/fdb/requests"
)

// guard decides which workflow may do what with a container. Times are in Unix seconds.
type guard struct {
	contract.FDBContainerInput
	// known: there was a request before, so that a FDBContainerUse is not the first.
	known bool
	// blamed are the users because of which another was refused.
	blamed map[string]bool
}

func fdbUserIn(users []contract.FDBContainerUser, id string) int {
	return slices.IndexFunc(users, func(u contract.FDBContainerUser) bool { return u.WorkflowID == id })
}

// free: there are no users and no holder.
func (g *guard) free() bool { return len(g.Users) == 0 && g.Holder == nil }

func (g *guard) settledAt() int64 {
	return g.Since + int64(contract.FDBContainerSettling/time.Second)
}

// advance applies the time that has passed: readers whose time has ended are dropped.
func (g *guard) advance(now int64) {
	g.Settled = g.Settled || now >= g.settledAt()
	g.Users = slices.DeleteFunc(g.Users, func(u contract.FDBContainerUser) bool {
		return u.ReadsUntil != 0 && u.ReadsUntil <= now
	})
}

// firstEnd returns when the first reader's time ends; 0 if there is none.
func (g *guard) firstEnd() int64 {
	var first int64
	for _, user := range g.Users {
		if user.ReadsUntil != 0 && (first == 0 || user.ReadsUntil < first) {
			first = user.ReadsUntil
		}
	}
	return first
}

// answer answers a request, whose sender runs.
func (g *guard) answer(request contract.FDBContainerRequest, now int64) contract.FDBContainerAnswer {
	first := !g.known
	g.known = true
	delete(g.blamed, request.User.WorkflowID)
	g.advance(now)
	switch request.Action {
	case contract.FDBContainerUse:
		g.Settled = g.Settled || (first && request.Fresh)
		g.enroll(request.User)
		g.advance(now)
		if g.heldByOther(request.User.WorkflowID) {
			return contract.FDBContainerAnswer{Busy: g.busyHolder(request)}
		}
	case contract.FDBContainerLeave:
		if at := fdbUserIn(g.Users, request.User.WorkflowID); at >= 0 {
			g.Users = slices.Delete(g.Users, at, at+1)
		}
	case contract.FDBContainerRelease:
		if g.Holder != nil && !g.heldByOther(request.User.WorkflowID) {
			g.Holder = nil
		}
	case contract.FDBContainerExpire, contract.FDBContainerDelete:
		return g.hold(request, now)
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

func (g *guard) heldByOther(id string) bool { return g.Holder != nil && g.Holder.WorkflowID != id }

// hold makes the user the holder, or says why not. Other users that keep data there are named even if there is a holder: waiting
// does not help. If the whole object's data are refused because of them, the object stops being a user: the others delete the
// data.
func (g *guard) hold(request contract.FDBContainerRequest, now int64) contract.FDBContainerAnswer {
	deletes := request.Action == contract.FDBContainerDelete
	if g.Holder != nil && g.Holder.WorkflowID == request.User.WorkflowID && (g.Holder.Deletes || !deletes) {
		return contract.FDBContainerAnswer{Held: true} // users that came since know of the holder
	}
	var others, readers []string
	for _, user := range g.Users {
		name := requests.NameFor(request.User, user)
		switch {
		case user.ReadsUntil != 0:
			readers = requests.WithName(readers, name)
			g.blamed[user.WorkflowID] = true
		case user.WorkflowID != request.Of:
			others = requests.WithName(others, name)
		}
	}
	switch {
	case deletes && len(others) > 0:
		if request.Whole { // at once: the next request may be from another that is being deleted
			g.Users = slices.DeleteFunc(g.Users, func(u contract.FDBContainerUser) bool {
				return u.WorkflowID == request.Of && u.ReadsUntil == 0
			})
		}
		return contract.FDBContainerAnswer{Others: others}
	case g.heldByOther(request.User.WorkflowID):
		g.blamed[g.Holder.WorkflowID] = true
		return contract.FDBContainerAnswer{Busy: g.busyHolder(request)}
	case len(readers) > 0:
		return contract.FDBContainerAnswer{Busy: "the data are being restored by " + strings.Join(readers, ", ")}
	case deletes && !g.Settled:
		return contract.FDBContainerAnswer{Busy: fmt.Sprintf("nothing is deleted there before %s, so that all who use the data "+
			"are known by then", details.Stamp(g.settledAt()))}
	}
	holder := request.User
	holder.ReadsUntil, holder.Since, holder.Deletes = 0, now, deletes
	g.Holder = &holder
	return contract.FDBContainerAnswer{Held: true}
}

// busyHolder describes the holder, as far as the requester may know it.
func (g *guard) busyHolder(request contract.FDBContainerRequest) string {
	return fmt.Sprintf("%s %s since %s", requests.NameFor(request.User, *g.Holder), g.doing(), details.Stamp(g.Holder.Since))
}

func (g *guard) doing() string {
	if g.Holder.Deletes {
		return "deletes the data"
	}
	return "expires the data"
}

// suspects returns the blamed workflows that may be gone without having released or left: the holder, and readers. A backup's
// data exist also when its workflow has ended.
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

// drop drops a workflow that is gone.
func (g *guard) drop(id string) {
	delete(g.blamed, id)
	if g.Holder != nil && g.Holder.WorkflowID == id {
		g.Holder = nil
	}
	g.Users = slices.DeleteFunc(g.Users, func(u contract.FDBContainerUser) bool { return u.WorkflowID == id && u.ReadsUntil != 0 })
}
