package location_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/workflows/approval"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/location"
)

// The decision table, as facts alone. What a row does not name is false.
func TestNextApproval(t *testing.T) {
	type view = contract.ApprovalView
	tests := map[string]struct {
		view view
		want contract.ApprovalAction
		// absent: the pending spec is not the tenant's present one, which is invalid.
		absent bool
	}{
		"approve, of a spec that the tenant has left": {view: view{HasPending: true, Fresh: true, Decision: "approve"}, want: contract.ApprovalWait, absent: true},
		"reject, of a spec that the tenant has left":  {view: view{HasPending: true, Fresh: true, Decision: "reject"}, want: contract.ApprovalWait, absent: true},
		"revoke, the tenant's spec being invalid":     {view: view{Revoke: true, HasApproved: true, Fresh: true}, want: contract.ApprovalRevoke, absent: true},
		"the location is gone, or needs no approval":  {view: view{Found: true, HasPending: true, Fresh: true, Decision: "approve"}, want: contract.ApprovalClose},
		"not asked yet":                                    {view: view{Needed: true}, want: contract.ApprovalWait},
		"no, not set":                                      {view: view{HasPending: true, Fresh: true}, want: contract.ApprovalWait},
		"no, pending":                                      {view: view{HasPending: true, Fresh: true, Decision: "pending"}, want: contract.ApprovalWait},
		"no, approve":                                      {view: view{HasPending: true, Fresh: true, Decision: "approve"}, want: contract.ApprovalApprove},
		"no, approve, of an update":                        {view: view{HasPending: true, HasApproved: true, Fresh: true, Decision: "approve"}, want: contract.ApprovalApprove},
		"no, approve, what was rejected":                   {view: view{HasPending: true, Rejected: true, Fresh: true, Decision: "approve"}, want: contract.ApprovalApprove},
		"no, reject":                                       {view: view{HasPending: true, Fresh: true, Decision: "reject"}, want: contract.ApprovalReject},
		"no, reject, of an update":                         {view: view{HasPending: true, HasApproved: true, Fresh: true, Decision: "reject"}, want: contract.ApprovalReject},
		"yes, not set":                                     {view: view{Revoke: true, HasApproved: true, Fresh: true}, want: contract.ApprovalRevoke},
		"yes, pending":                                     {view: view{Revoke: true, HasApproved: true, Fresh: true, Decision: "pending"}, want: contract.ApprovalRevoke},
		"yes, approve: revoke wins":                        {view: view{Revoke: true, HasApproved: true, HasPending: true, Fresh: true, Decision: "approve"}, want: contract.ApprovalRevoke},
		"yes, reject":                                      {view: view{Revoke: true, HasApproved: true, HasPending: true, Fresh: true, Decision: "reject"}, want: contract.ApprovalRevoke},
		"yes, the tenant having changed the spec":          {view: view{Revoke: true, HasApproved: true, NotRequested: true, Fresh: true}, want: contract.ApprovalRevoke},
		"yes, killed before it was carried out":            {view: view{Revoke: true, HasApproved: true}, want: contract.ApprovalRevoke},
		"yes, carried out or nothing approved":             {view: view{Revoke: true, HasPending: true}, want: contract.ApprovalReset},
		"yes, nothing approved, and approve":               {view: view{Revoke: true, HasPending: true, Fresh: true, Decision: "approve"}, want: contract.ApprovalReset},
		"a new spec":                                       {view: view{NotRequested: true}, want: contract.ApprovalRequest},
		"a new spec and a decision about the one before":   {view: view{NotRequested: true, HasPending: true, Fresh: true, Decision: "approve"}, want: contract.ApprovalRequest},
		"a new spec stored, the old approval still there":  {view: view{HasPending: true, HasApproved: true, Decision: "approve"}, want: contract.ApprovalReset},
		"a new spec stored, the old rejection still there": {view: view{HasPending: true, Decision: "reject"}, want: contract.ApprovalReset},
		"approved, and at rest":                            {view: view{HasApproved: true, Returned: true, Decision: "approve"}, want: contract.ApprovalWait},
		"rejected, and at rest":                            {view: view{HasPending: true, Rejected: true, Decision: "reject"}, want: contract.ApprovalWait},
		"recorded, and the annotations speak of it still": {
			view: view{HasApproved: true, Returned: true, Signed: true, Decision: "approve"}, want: contract.ApprovalTidy,
		},
		"signed, and not carried out yet": {
			view: view{HasPending: true, Signed: true, Fresh: true, Decision: "approve"}, want: contract.ApprovalApprove,
		},
		"rejected, set to pending":                                       {view: view{HasPending: true, Rejected: true, Fresh: true, Decision: "pending"}, want: contract.ApprovalReopen},
		"back to the approved spec":                                      {view: view{HasPending: true, HasApproved: true, Returned: true}, want: contract.ApprovalDrop},
		"back to the approved spec and a decision about the other":       {view: view{HasPending: true, HasApproved: true, Returned: true, Fresh: true, Decision: "approve"}, want: contract.ApprovalDrop},
		"another credential":                                             {view: view{HasApproved: true, Returned: true, CredentialMoved: true}, want: contract.ApprovalFollow},
		"another credential while pending, and a decision: it follows":   {view: view{HasPending: true, CredentialMoved: true, Fresh: true, Decision: "approve"}, want: contract.ApprovalFollow},
		"a decision when there is nothing to decide":                     {view: view{HasApproved: true, Returned: true, Fresh: true, Decision: "reject"}, want: contract.ApprovalObserve},
		"an invalid spec before any valid one, and a decision about it":  {view: view{Fresh: true, Decision: "approve"}, want: contract.ApprovalObserve},
		"an unknown decision, as of a newer version, is waited out":      {view: view{HasPending: true, Fresh: true, Decision: "escalate"}, want: contract.ApprovalWait},
		"an unknown decision about what was rejected is no reject again": {view: view{HasPending: true, Rejected: true, Fresh: true, Decision: "escalate"}, want: contract.ApprovalReopen},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			v := test.view
			if test.want != contract.ApprovalClose && title != "not asked yet" {
				v.Needed, v.Found = true, true
			}
			v.Present = v.HasPending && !v.NotRequested && !v.Returned && !test.absent
			assert.Equal(t, test.want, approval.NextApproval(v))
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
		Found: true, Phase: "Created", Finalizer: true, SpecValidated: true, Accepted: true, Requested: true, InForce: true,
		Synced: true, Shown: true, Velero: contract.VeleroLocationView{Exists: true},
	}
	assert.True(t, location.Settled(rest))
	assert.True(t, location.Settled(contract.LocationView{}), "gone")
	tests := map[string]struct {
		change func(*contract.LocationView)
		want   bool
	}{
		"not judged":                          {func(v *contract.LocationView) { v.SpecValidated = false }, false},
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
