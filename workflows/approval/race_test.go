package approval_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/location/locationtest"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

// justBefore has do happen right before the first write of that verb to the approval request, after what is written was
// decided.
func justBefore(world *fake.World, verb string, do func(*fake.World)) {
	world.Fail(func(of string, object client.Object) error {
		if _, is := object.(*locationtest.Request); is && of == verb {
			world.Fail(nil)
			do(world)
		}
		return nil
	})
}

// justAfter is justBefore's counterpart.
func justAfter(world *fake.World, verb string, do func(*fake.World)) {
	world.Lose(func(of string, object client.Object) error {
		if _, is := object.(*locationtest.Request); is && of == verb {
			world.Lose(nil)
			do(world)
		}
		return nil
	})
}

func TestRacesOfTheTenantTheAdministratorAndTheWorkflow(t *testing.T) {
	const status, spec = "patch status", "patch"
	second := locationtest.EditLocation(locationtest.Bucket("second"))
	third := locationtest.EditLocation(locationtest.Bucket("third"))
	firstRequest, atApproved := situations()["first request"].Make, makeApproved
	tests := map[string]struct {
		world             func(*testing.T) *fake.World
		events            func(*fake.World)
		pending, approved string
		reason            string
		decision          oadpv1alpha1.ApprovalDecision
	}{
		"a decision between the storing of a new spec and the reset of the old decision counts": {
			world: atApproved, events: func(w *fake.World) { second(w); justAfter(w, status, locationtest.Decide("reject")) },
			pending: "second/keys", approved: "bucket/keys", reason: reasonRejected, decision: "reject",
		},
		"a decision at the moment of the reset is not overwritten": {
			world: atApproved, events: func(w *fake.World) { second(w); justBefore(w, spec, locationtest.Decide("reject")) },
			pending: "second/keys", approved: "bucket/keys", reason: reasonRejected, decision: "reject",
		},
		"a decision at the moment when a newer spec is stored is about the one before": {
			world: firstRequest, events: func(w *fake.World) { second(w); justBefore(w, status, locationtest.Decide("approve")) },
			pending: "second/keys", reason: reasonPending, decision: "pending",
		},
		"the tenant edits between the administrator's look and the decision": {
			world: firstRequest, events: func(w *fake.World) { second(w); locationtest.Decide("approve")(w) },
			pending: "second/keys", reason: reasonPending, decision: "pending",
		},
		"the tenant edits after the decision, before it is acted on": {
			world: firstRequest, events: func(w *fake.World) { locationtest.Decide("approve")(w); second(w) },
			pending: "second/keys", reason: reasonPending, decision: "pending",
		},
		"the tenant edits while an approval is written: what was seen is approved, the rest is pending": {
			world: firstRequest, events: func(w *fake.World) { locationtest.Decide("approve")(w); justBefore(w, status, second) },
			pending: "second/keys", approved: "bucket/keys", reason: reasonPending, decision: "pending",
		},
		"the tenant edits again between the storing of a spec and the reset": {
			world: atApproved, events: func(w *fake.World) { second(w); justAfter(w, status, third) },
			pending: "third/keys", approved: "bucket/keys", reason: reasonPending, decision: "pending",
		},
		"the tenant edits while a revocation is written": {
			world: atApproved, events: func(w *fake.World) { locationtest.Revoke(w); justBefore(w, status, second) },
			pending: "second/keys", reason: reasonPending, decision: "pending",
		},
		"an approval at the moment of a revocation's reset is about what is asked for again": {
			world: situations()["update of the spec"].Make, events: func(w *fake.World) { locationtest.Revoke(w); justBefore(w, spec, locationtest.Decide("approve")) },
			pending: "second/keys", reason: reasonPending, decision: "pending", // revoke wins
		},
		"the tenant returns to the approved spec": {
			world: situations()["update of the spec"].Make, events: locationtest.EditLocation(locationtest.Bucket("bucket")),
			approved: "bucket/keys", reason: reasonApproved, decision: "pending",
		},
		"the tenant returns to the approved spec while the other is approved": {
			world: situations()["update of the spec"].Make, events: func(w *fake.World) {
				locationtest.Decide("approve")(w)
				locationtest.EditLocation(locationtest.Bucket("bucket"))(w)
			},
			approved: "bucket/keys", reason: reasonApproved, decision: "approve",
		},
		"the credential changes while the spec is pending": {
			world: firstRequest, events: func(w *fake.World) {
				locationtest.AddOtherSecret(w)
				locationtest.EditLocation(locationtest.Credential("other"))(w)
			},
			pending: "bucket/other", reason: reasonPending, decision: "pending",
		},
		"the credential changes between the administrator's look and the decision": {
			world: firstRequest, events: func(w *fake.World) {
				locationtest.AddOtherSecret(w)
				locationtest.EditLocation(locationtest.Credential("other"))(w)
				locationtest.Decide("approve")(w)
			},
			approved: "bucket/other", reason: reasonApproved, decision: "approve",
		},
		"rejected, then approved": {
			world: firstRequest, events: func(w *fake.World) {
				locationtest.Decide("reject")(w)
				justAfter(w, status, locationtest.Decide("approve"))
			},
			approved: "bucket/keys", reason: reasonApproved, decision: "approve",
		},
		"rejected, then set back to pending": {
			world: firstRequest, events: func(w *fake.World) {
				locationtest.Decide("reject")(w)
				justAfter(w, status, locationtest.Decide("pending"))
			},
			pending: "bucket/keys", reason: reasonPending, decision: "pending",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			world := test.world(t)
			test.events(world)
			require.NoError(t, locationtest.ServeApproval(world))
			locationtest.Settle(t, world)
			got := world.ApprovalRequest(workflowtest.Backup)
			asked := got.Status.VeleroBackupStorageLocationApprovalRequest
			assert.Equal(t, test.pending, called(asked.PendingSpec), "pending")
			assert.Equal(t, test.approved, called(asked.ApprovedSpec), "approved")
			condition := meta.FindStatusCondition(got.Status.Conditions, "ClusterAdminApproved")
			assert.Equal(t, test.reason, condition.Reason)
			assert.Equal(t, test.decision, got.Spec.PendingApprovalDecision)
			assert.Equal(t, strings.Split(test.approved, "/")[0], locationtest.BucketOf(world), "what was approved is in use")
		})
	}
}

// ending is all that must be the same however often something was killed on the way.
func ending(world *fake.World) string {
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	line("bucket %q copy %q", locationtest.BucketOf(world), locationtest.Copied(world))
	if object := world.Location(workflowtest.Backup); object != nil {
		all := locationtest.Conditions(world)
		for i := range all {
			all[i], _, _ = strings.Cut(all[i], "/") // whether it was created or updated is lost
		}
		slices.Sort(all)
		line("%s %v %v", object.Status.Phase, all, object.Finalizers)
	}
	if got := world.ApprovalRequest(workflowtest.Backup); got != nil {
		asked := got.Status.VeleroBackupStorageLocationApprovalRequest
		line("pending %s approved %s decision %s revoke %t", called(asked.PendingSpec), called(asked.ApprovedSpec),
			got.Spec.PendingApprovalDecision, got.Spec.RevokeApprovedSpec)
		if last := got.Status.LastDecision; last != nil {
			line("last %s by %s because %s", last.Decision, last.DecidedBy, last.Reason)
		}
	}
	for _, each := range []string{"in-it", "elsewhere"} {
		if nab := world.Read(each); nab != nil {
			line("%s being deleted %t", each, !nab.DeletionTimestamp.IsZero())
		}
	}
	return text.String()
}

// Killed before or after any write, the next run ends where the first would have.
func TestAKillAtAnyWriteEndsInTheSame(t *testing.T) {
	inIt, elsewhere := fake.NAB("in-it"), fake.NAB("elsewhere")
	for nab, at := range map[*oadpv1alpha1.NonAdminBackup]string{inIt: fake.LocationName(workflowtest.Backup), elsewhere: "default"} {
		nab.Finalizers = []string{oadpv1alpha1.NabFinalizer}
		nab.Status.VeleroBackup = &oadpv1alpha1.VeleroBackup{Spec: &velerov1.BackupSpec{StorageLocation: at}}
	}
	tests := map[string]struct {
		world func(*testing.T) *fake.World
		event func(*fake.World)
	}{
		"create":            {world: func(t *testing.T) *fake.World { return locationtest.Place(t, false) }},
		"create and ask":    {world: func(t *testing.T) *fake.World { return locationtest.Place(t, true) }},
		"approve":           {world: situations()["first request"].Make, event: locationtest.Decide("approve")},
		"reject":            {world: situations()["first request"].Make, event: locationtest.Decide("reject")},
		"ask for an update": {world: makeApproved, event: locationtest.EditLocation(locationtest.Bucket("second"))},
		"approve an update": {world: situations()["update of the spec"].Make, event: locationtest.Decide("approve")},
		"revoke":            {world: makeApproved, event: locationtest.Revoke},
		"revoke an update":  {world: situations()["update of the spec"].Make, event: locationtest.Revoke},
		"return":            {world: situations()["update of the spec"].Make, event: locationtest.EditLocation(locationtest.Bucket("bucket"))},
		"rotate":            {world: makeApproved, event: locationtest.Rotate("Second")},
		"forbid":            {world: makeApproved, event: locationtest.Forbid},
		"change credential": {world: makeApproved, event: func(w *fake.World) {
			locationtest.AddOtherSecret(w)
			locationtest.EditLocation(locationtest.Credential("other"))(w)
		}},
		"switch approval on":  {world: func(t *testing.T) *fake.World { w := locationtest.Place(t, false); locationtest.Settle(t, w); return w }, event: locationtest.SwitchApproval(true)},
		"switch approval off": {world: makeApproved, event: locationtest.SwitchApproval(false)},
		"delete": {world: func(t *testing.T) *fake.World {
			return locationtest.Approved(t, inIt.DeepCopy(), elsewhere.DeepCopy())
		}, event: locationtest.RemoveLocation},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			var want string
			for kill := 0; ; kill++ { // 0: none; then before and after each write in turn
				world := test.world(t)
				if test.event != nil {
					test.event(world)
				}
				killed := killAt(world, kill)
				if err := locationtest.Settled(world); err != nil {
					require.ErrorContains(t, err, "killed")
				}
				locationtest.Settle(t, world)
				if kill == 0 {
					want = ending(world)
					continue
				}
				assert.Equal(t, want, ending(world), "killed at %d", kill)
				if !*killed {
					require.Greater(t, kill, 2, "there was nothing to kill at")
					return
				}
			}
		})
	}
}

// killAt ends the run before write number (kill+1)/2, if kill is odd, or after it; it reports whether it came to that.
func killAt(world *fake.World, kill int) *bool {
	killed, writes := false, 0
	world.Fail(func(string, client.Object) error {
		if writes++; !killed && kill%2 == 1 && writes == (kill+1)/2 {
			killed = true
			return workflowtest.ErrKilled
		}
		return nil
	})
	world.Lose(func(string, client.Object) error {
		if !killed && kill > 0 && kill%2 == 0 && writes == kill/2 {
			killed = true
			return workflowtest.ErrKilled
		}
		return nil
	})
	return &killed
}
