package location_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/location/locationtest"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

func dropSecret(w *fake.World) { w.Remove(fake.Secret(fake.SecretName, nil)) }

func addSecret(w *fake.World) {
	_ = w.Client.Create(context.Background(), fake.Secret(fake.SecretName, fake.Credentials(locationtest.SecretMark)))
}

func prefix(prefix string) func(*locationtest.VeleroLS) {
	return func(spec *locationtest.VeleroLS) { spec.ObjectStorage.Prefix = prefix }
}

func dropVeleroLocation(w *fake.World) { w.Remove(w.VeleroLocation(workflowtest.Backup)) }

func dropCopy(w *fake.World) { w.Remove(w.Copy(workflowtest.Backup)) }

// What becomes of a location by a row of events, each of which is served until all is at rest.
func TestALocationFollowsItsSpec(t *testing.T) {
	const (
		accepted   = "Accepted=True/BslSpecValidation"
		refused    = "Accepted=False/BslSpecValidation"
		allowed    = "ClusterAdminApproved=True/BslSpecApproved"
		pending    = "ClusterAdminApproved=False/BslSpecApprovalPending"
		rejected   = "ClusterAdminApproved=False/BslSpecRejected"
		updateNo   = "SpecUpdateApproved=False/BslSpecUpdateRejected"
		secretMade = "SecretSynced=True/SecretCreated"
		secretNew  = "SecretSynced=True/SecretUpdated"
		secretBad  = "SecretSynced=False/SecretSyncFailed"
		made       = "BackupStorageLocationSynced=True/BackupStorageLocationCreated"
		remade     = "BackupStorageLocationSynced=True/BackupStorageLocationUpdated"
	)
	invalid := locationtest.EditLocation(prefix("../crew"))
	steps := func(steps ...func(*fake.World)) []func(*fake.World) { return steps }
	tests := map[string]struct {
		approval   bool
		steps      []func(*fake.World)
		phase      oadpv1alpha1.NonAdminPhase
		conditions []string
		bucket     string // of the Velero BackupStorageLocation; none: there is none
		copy       string // what the copy of the Secret holds; none: there is none
		request    bool
	}{
		"made without approval": {
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"not made before approval": {
			approval: true, phase: "BackingOff", conditions: []string{accepted, pending}, request: true,
		},
		"made with approval": {
			approval: true, steps: steps(locationtest.Decide("approve")), request: true,
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"not made when rejected": {
			approval: true, steps: steps(locationtest.Decide("reject")), request: true,
			phase: "BackingOff", conditions: []string{accepted, rejected},
		},
		"invalid": {
			approval: true, steps: steps(locationtest.SwitchApproval(false), locationtest.RemoveLocation, func(w *fake.World) {
				object := fake.NaBSL(workflowtest.Backup)
				object.Spec.BackupStorageLocationSpec.ObjectStorage.Prefix = "../crew"
				_ = w.Client.Create(context.Background(), object)
			}),
			phase: "BackingOff", conditions: []string{refused},
		},
		"edited, without approval": {
			steps: steps(locationtest.EditLocation(locationtest.Bucket("other"))),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, remade}, bucket: "other", copy: locationtest.SecretMark,
		},
		"edited to something invalid: what was made stays": {
			steps: steps(invalid),
			phase: "BackingOff", conditions: []string{refused, allowed, secretMade, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"edited to something invalid and back": {
			steps: steps(invalid, locationtest.EditLocation(prefix("backups"))),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"edited with approval: the approved one stays": {
			approval: true, steps: steps(locationtest.Decide("approve"), locationtest.EditLocation(locationtest.Bucket("other"))), request: true,
			phase: "BackingOff", conditions: []string{accepted, pending, secretMade, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"edited to something invalid with approval: the approved one stays": {
			approval: true, steps: steps(locationtest.Decide("approve"), invalid), request: true,
			phase: "BackingOff", conditions: []string{refused, allowed, secretMade, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"approved when its tenant has left that spec for an invalid one: not yet": {
			approval: true, steps: steps(invalid, locationtest.Decide("approve")), request: true,
			phase: "BackingOff", conditions: []string{refused, pending},
		},
		"approved when its tenant has left that spec for an invalid one, and comes back": {
			approval: true, steps: steps(invalid, locationtest.Decide("approve"), locationtest.EditLocation(prefix("backups"))), request: true,
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"edited and approved": {
			approval: true, steps: steps(locationtest.Decide("approve"), locationtest.EditLocation(locationtest.Bucket("other")), locationtest.Decide("approve")), request: true,
			phase: "Created", conditions: []string{accepted, allowed, secretMade, remade}, bucket: "other", copy: locationtest.SecretMark,
		},
		"edited and rejected: the approved one stays": {
			approval: true, steps: steps(locationtest.Decide("approve"), locationtest.EditLocation(locationtest.Bucket("other")), locationtest.Decide("reject")), request: true,
			phase: "BackingOff", conditions: []string{accepted, rejected, updateNo, secretMade, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"edited, rejected, and the Secret rotated: the approved one follows": {
			approval: true, request: true,
			steps: steps(locationtest.Decide("approve"), locationtest.EditLocation(locationtest.Bucket("other")), locationtest.Decide("reject"), locationtest.Rotate("Second")),
			phase: "BackingOff", conditions: []string{accepted, rejected, updateNo, secretNew, made}, bucket: "bucket", copy: "Second",
		},
		"edited, pending, and the Secret rotated: the approved one follows": {
			approval: true, request: true,
			steps: steps(locationtest.Decide("approve"), locationtest.EditLocation(locationtest.Bucket("other")), locationtest.Rotate("Second")),
			phase: "BackingOff", conditions: []string{accepted, pending, secretNew, made}, bucket: "bucket", copy: "Second",
		},
		"edited, rejected and edited back": {
			approval: true, request: true,
			steps: steps(locationtest.Decide("approve"), locationtest.EditLocation(locationtest.Bucket("other")), locationtest.Decide("reject"), locationtest.EditLocation(locationtest.Bucket("bucket"))),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"revoked": {
			approval: true, steps: steps(locationtest.Decide("approve"), locationtest.Revoke), request: true,
			phase: "BackingOff", conditions: []string{accepted, pending},
		},
		"revoked and approved again": {
			approval: true, steps: steps(locationtest.Decide("approve"), locationtest.Revoke, locationtest.Decide("approve")), request: true,
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"another Secret, without approval by anybody": {
			approval: true, request: true,
			steps: steps(locationtest.Decide("approve"), locationtest.AddOtherSecret, locationtest.EditLocation(locationtest.Credential("other"))),
			phase: "Created", conditions: []string{accepted, allowed, secretNew, made}, bucket: "bucket", copy: "Other",
		},
		"its Secret missing": {
			steps: steps(locationtest.RemoveLocation, dropSecret, recreate), phase: "BackingOff", conditions: []string{refused},
		},
		"its Secret missing, then made": {
			steps: steps(locationtest.RemoveLocation, dropSecret, recreate, addSecret),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"its Secret missing, approval asked for when it is made": {
			approval: true, steps: steps(locationtest.RemoveLocation, dropSecret, recreate, addSecret), request: true,
			phase: "BackingOff", conditions: []string{accepted, pending},
		},
		"its Secret gone later: the copy stays": {
			steps: steps(dropSecret),
			phase: "Created", conditions: []string{accepted, allowed, secretBad, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"its Secret gone later, with approval: the copy stays": {
			approval: true, steps: steps(locationtest.Decide("approve"), dropSecret), request: true,
			phase: "Created", conditions: []string{accepted, allowed, secretBad, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"its Secret gone and made again": {
			steps: steps(dropSecret, addSecret, locationtest.Rotate("Second")),
			phase: "Created", conditions: []string{accepted, allowed, secretNew, made}, bucket: "bucket", copy: "Second",
		},
		"its Secret gone before the approval": {
			approval: true, steps: steps(dropSecret, locationtest.Decide("approve")), request: true,
			phase: "BackingOff", conditions: []string{refused, pending, secretBad},
		},
		"its Secret gone before the approval, and made again": {
			approval: true, steps: steps(dropSecret, locationtest.Decide("approve"), addSecret), request: true,
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"its Secret forbidden before the approval": {
			approval: true, steps: steps(locationtest.Forbid, locationtest.Decide("approve")), request: true,
			phase: "BackingOff", conditions: []string{refused, pending, secretBad},
		},
		"its Secret gone and the copy too, with approval": {
			approval: true, steps: steps(locationtest.Decide("approve"), dropSecret, dropCopy), request: true,
			phase: "Created", conditions: []string{accepted, allowed, secretBad, made}, bucket: "bucket",
		},
		"its Secret gone, and what was made for Velero deleted by hand: it comes back with the copy": {
			steps: steps(dropSecret, dropVeleroLocation),
			phase: "Created", conditions: []string{accepted, allowed, secretBad, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"its Secret forbidden, and what was made for Velero deleted by hand: it comes back with the copy": {
			steps: steps(locationtest.Forbid, dropVeleroLocation),
			phase: "Created", conditions: []string{accepted, allowed, secretBad, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"edited to a Secret that is not there, and what was made for Velero deleted by hand": {
			steps: steps(locationtest.EditLocation(func(spec *locationtest.VeleroLS) { spec.Credential.Name = "absent" }), dropVeleroLocation),
			phase: "BackingOff", conditions: []string{refused, allowed, secretBad}, copy: locationtest.SecretMark,
		},
		"accepted with another Secret, which goes before it is copied: the copy stays": {
			steps: steps(func(w *fake.World) {
				locationtest.EditLocation(func(spec *locationtest.VeleroLS) { spec.Credential.Name = "other" })(w)
				location := w.Location(workflowtest.Backup)
				location.Status.Conditions[0].ObservedGeneration = location.Generation
				_ = w.Client.Status().Update(context.Background(), location)
			}),
			phase: "Created", conditions: []string{accepted, allowed, secretBad, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"rotated": {
			steps: steps(locationtest.Rotate("Second")),
			phase: "Created", conditions: []string{accepted, allowed, secretNew, made}, bucket: "bucket", copy: "Second",
		},
		"of forbidden content": {
			steps: steps(locationtest.RemoveLocation, locationtest.Forbid, recreate), phase: "BackingOff", conditions: []string{refused},
		},
		"of forbidden content, with approval": {
			approval: true, steps: steps(locationtest.RemoveLocation, locationtest.Forbid, recreate), phase: "BackingOff", conditions: []string{refused},
		},
		"rotated to forbidden content: the copy stays": {
			steps: steps(locationtest.Forbid),
			phase: "Created", conditions: []string{accepted, allowed, secretBad, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"rotated to forbidden content, with approval: the copy stays": {
			approval: true, steps: steps(locationtest.Decide("approve"), locationtest.Forbid), request: true,
			phase: "Created", conditions: []string{accepted, allowed, secretBad, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"rotated to forbidden content and on": {
			steps: steps(locationtest.Forbid, locationtest.Rotate("Second")),
			phase: "Created", conditions: []string{accepted, allowed, secretNew, made}, bucket: "bucket", copy: "Second",
		},
		"the Velero BackupStorageLocation deleted by hand": {
			steps: steps(dropVeleroLocation),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"the copy deleted by hand": {
			steps: steps(dropCopy),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"the Velero BackupStorageLocation edited by hand": {
			steps: steps(func(w *fake.World) {
				object := w.VeleroLocation(workflowtest.Backup)
				object.Spec.ObjectStorage.Bucket = "mine"
				_ = w.Client.Update(context.Background(), object)
			}),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, remade}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"the copy edited by hand": {
			steps: steps(func(w *fake.World) {
				object := w.Copy(workflowtest.Backup)
				object.Data = map[string][]byte{fake.SecretKey: fake.Credentials("Mine"), "more": {1}}
				_ = w.Client.Update(context.Background(), object)
			}),
			phase: "Created", conditions: []string{accepted, allowed, secretNew, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"approval switched on": {
			steps: steps(locationtest.SwitchApproval(true)), request: true, phase: "BackingOff", conditions: []string{accepted, pending},
		},
		"approval switched on while the spec is invalid": {
			steps: steps(invalid, locationtest.SwitchApproval(true)), phase: "BackingOff", conditions: []string{refused},
		},
		"approval switched off": {
			approval: true, steps: steps(locationtest.SwitchApproval(false)),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"approval switched off after a rejection": {
			approval: true, steps: steps(locationtest.Decide("reject"), locationtest.SwitchApproval(false)),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: locationtest.SecretMark,
		},
		"approval switched off and on": {
			approval: true, steps: steps(locationtest.Decide("approve"), locationtest.SwitchApproval(false), locationtest.SwitchApproval(true)), request: true,
			phase: "BackingOff", conditions: []string{accepted, pending},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			world := locationtest.Place(t, test.approval)
			locationtest.Settle(t, world)
			for _, step := range test.steps {
				step(world)
				locationtest.Settle(t, world)
			}
			assert.Equal(t, test.phase, world.Location(workflowtest.Backup).Status.Phase)
			assert.ElementsMatch(t, test.conditions, locationtest.Conditions(world))
			assert.Equal(t, test.bucket, locationtest.BucketOf(world))
			assert.Equal(t, test.copy, locationtest.Copied(world))
			assert.Equal(t, test.request, world.ApprovalRequest(workflowtest.Backup) != nil)
			if made := world.Copy(workflowtest.Backup); made != nil {
				assert.Equal(t, corev1.SecretTypeOpaque, made.Type)
				assert.Len(t, made.Data, 1, "only the key that the spec names")
			}
			if made := world.VeleroLocation(workflowtest.Backup); made != nil {
				assert.Equal(t, fake.LocationName(workflowtest.Backup), made.Spec.Credential.Name)
				assert.Equal(t, fake.Namespace+"/backups", made.Spec.ObjectStorage.Prefix)
			}
		})
	}
}

func recreate(w *fake.World) {
	_ = w.Client.Create(context.Background(), fake.NaBSL(workflowtest.Backup))
}

// What Velero says of the location is shown to its tenant.
func TestVelerosWordOnALocationIsMirrored(t *testing.T) {
	world := locationtest.Place(t, false)
	locationtest.Settle(t, world)
	for _, phase := range []velerov1.BackupStorageLocationPhase{"Unavailable", "Available"} {
		world.Validate(workflowtest.Backup, phase, "rpc error: AccessDenied")
		locationtest.Settle(t, world)
		shown := world.Location(workflowtest.Backup).Status.VeleroBackupStorageLocation
		assert.Equal(t, phase, shown.Status.Phase)
		assert.Equal(t, "rpc error: AccessDenied", shown.Status.Message)
	}
}
