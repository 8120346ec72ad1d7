package location_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/k8s/location"
	"holdfast.dev/holdfast/workflows/contract"
)

// The decision table of seed 001 and what surrounds it, as facts alone. What a row does not name is false.
func TestNextApproval(t *testing.T) {
	type view = contract.ApprovalView
	tests := map[string]struct {
		view view
		want contract.ApprovalAction
	}{
		"the location is gone, or needs no approval": {view{Found: true, HasPending: true, Fresh: true, Decision: "approve"}, contract.ApprovalClose},
		"not asked yet":                                            {view{Needed: true}, contract.ApprovalWait},
		"no, not set":                                              {view{HasPending: true, Fresh: true}, contract.ApprovalWait},
		"no, pending":                                              {view{HasPending: true, Fresh: true, Decision: "pending"}, contract.ApprovalWait},
		"no, approve":                                              {view{HasPending: true, Fresh: true, Decision: "approve"}, contract.ApprovalApprove},
		"no, approve, of an update":                                {view{HasPending: true, HasApproved: true, Fresh: true, Decision: "approve"}, contract.ApprovalApprove},
		"no, approve, what was rejected":                           {view{HasPending: true, Rejected: true, Fresh: true, Decision: "approve"}, contract.ApprovalApprove},
		"no, reject":                                               {view{HasPending: true, Fresh: true, Decision: "reject"}, contract.ApprovalReject},
		"no, reject, of an update":                                 {view{HasPending: true, HasApproved: true, Fresh: true, Decision: "reject"}, contract.ApprovalReject},
		"yes, not set":                                             {view{Revoke: true, HasApproved: true, Fresh: true}, contract.ApprovalRevoke},
		"yes, pending":                                             {view{Revoke: true, HasApproved: true, Fresh: true, Decision: "pending"}, contract.ApprovalRevoke},
		"yes, approve: revoke wins":                                {view{Revoke: true, HasApproved: true, HasPending: true, Fresh: true, Decision: "approve"}, contract.ApprovalRevoke},
		"yes, reject":                                              {view{Revoke: true, HasApproved: true, HasPending: true, Fresh: true, Decision: "reject"}, contract.ApprovalRevoke},
		"yes, the tenant having changed the spec":                  {view{Revoke: true, HasApproved: true, Unasked: true, Fresh: true}, contract.ApprovalRevoke},
		"yes, killed before it was carried out":                    {view{Revoke: true, HasApproved: true}, contract.ApprovalRevoke},
		"yes, carried out or nothing approved":                     {view{Revoke: true, HasPending: true}, contract.ApprovalReset},
		"yes, nothing approved, and approve":                       {view{Revoke: true, HasPending: true, Fresh: true, Decision: "approve"}, contract.ApprovalReset},
		"a new spec":                                               {view{Unasked: true}, contract.ApprovalAsk},
		"a new spec and a decision about the one before":           {view{Unasked: true, HasPending: true, Fresh: true, Decision: "approve"}, contract.ApprovalAsk},
		"a new spec stored, the old approval still there":          {view{HasPending: true, HasApproved: true, Decision: "approve"}, contract.ApprovalReset},
		"a new spec stored, the old rejection still there":         {view{HasPending: true, Decision: "reject"}, contract.ApprovalReset},
		"approved, and at rest":                                    {view{HasApproved: true, Returned: true, Decision: "approve"}, contract.ApprovalWait},
		"rejected, and at rest":                                    {view{HasPending: true, Rejected: true, Decision: "reject"}, contract.ApprovalWait},
		"rejected, set to pending":                                 {view{HasPending: true, Rejected: true, Fresh: true, Decision: "pending"}, contract.ApprovalReopen},
		"back to the approved spec":                                {view{HasPending: true, HasApproved: true, Returned: true}, contract.ApprovalDrop},
		"back to the approved spec and a decision about the other": {view{HasPending: true, HasApproved: true, Returned: true, Fresh: true, Decision: "approve"}, contract.ApprovalDrop},
		"another credential":                                       {view{HasApproved: true, Returned: true, CredentialMoved: true}, contract.ApprovalFollow},
		"another credential while pending, and a decision: it follows":   {view{HasPending: true, CredentialMoved: true, Fresh: true, Decision: "approve"}, contract.ApprovalFollow},
		"a decision when there is nothing to decide":                     {view{HasApproved: true, Returned: true, Fresh: true, Decision: "reject"}, contract.ApprovalObserve},
		"an invalid spec before any valid one, and a decision about it":  {view{Fresh: true, Decision: "approve"}, contract.ApprovalObserve},
		"an unknown decision, as of a newer version, is waited out":      {view{HasPending: true, Fresh: true, Decision: "escalate"}, contract.ApprovalWait},
		"an unknown decision about what was rejected is no reject again": {view{HasPending: true, Rejected: true, Fresh: true, Decision: "escalate"}, contract.ApprovalReopen},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			v := test.view
			if test.want != contract.ApprovalClose && title != "not asked yet" {
				v.Needed, v.Found = true, true
			}
			assert.Equal(t, test.want, location.NextApproval(v))
		})
	}
}

func TestStateOfAnApproval(t *testing.T) {
	type view = contract.ApprovalView
	tests := map[contract.Approval][]view{
		contract.ApprovalNotRequired: {{}, {HasPending: true}},
		contract.ApprovalPending:     {{Needed: true}, {Needed: true, HasPending: true}, {Needed: true, HasPending: true, HasApproved: true}},
		contract.ApprovalRejected:    {{Needed: true, HasPending: true, Rejected: true}, {Needed: true, HasPending: true, Rejected: true, HasApproved: true}},
		contract.ApprovalApproved:    {{Needed: true, HasApproved: true}},
	}
	for want, views := range tests {
		for _, v := range views {
			assert.Equal(t, want, v.State(), "%+v", v)
		}
	}
}

func TestSettledLocations(t *testing.T) {
	rest := contract.LocationView{
		Found: true, Phase: "Created", Finalizer: true, SpecJudged: true, Accepted: true, Requested: true, InForce: true,
		Synced: true, Shown: true, Velero: contract.VeleroLocationView{Exists: true},
	}
	assert.True(t, location.Settled(rest))
	assert.True(t, location.Settled(contract.LocationView{}), "gone")
	tests := map[string]struct {
		change func(*contract.LocationView)
		want   bool
	}{
		"not judged":                          {func(v *contract.LocationView) { v.SpecJudged = false }, false},
		"without finalizer":                   {func(v *contract.LocationView) { v.Finalizer = false }, false},
		"invalid, made, without finalizer":    {func(v *contract.LocationView) { v.Finalizer, v.Accepted = false, false }, false},
		"not requested":                       {func(v *contract.LocationView) { v.Requested = false }, false},
		"not synced":                          {func(v *contract.LocationView) { v.Synced = false }, false},
		"not shown":                           {func(v *contract.LocationView) { v.Shown = false }, false},
		"kept":                                {func(v *contract.LocationView) { v.Synced, v.Kept = false, true }, true},
		"being deleted":                       {func(v *contract.LocationView) { v.BeingDeleted = true }, false},
		"being deleted, released":             {func(v *contract.LocationView) { v.BeingDeleted, v.Finalizer = true, false }, true},
		"being deleted, released too early":   {func(v *contract.LocationView) { v.BeingDeleted, v.Finalizer, v.Remains = true, false, 1 }, false},
		"invalid, nothing made, no finalizer": {func(v *contract.LocationView) { v.Accepted, v.Finalizer, v.Velero.Exists = false, false, false }, true},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			v := rest
			test.change(&v)
			assert.Equal(t, test.want, location.Settled(v))
		})
	}
}
