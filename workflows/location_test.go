package workflows_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

const forbidden = "[default]\naws_access_key_id=AKIA\naws_secret_access_key=" + secretMark + "\ncredential_process=/bin/" + secretMark + "\n"

func rotate(mark string) func(*fake.World) {
	return func(w *fake.World) { w.Rotate(fake.SecretName, fake.Credentials(mark)) }
}

func forbid(w *fake.World) { w.Rotate(fake.SecretName, []byte(forbidden)) }

func dropSecret(w *fake.World) { w.Remove(fake.Secret(fake.SecretName, nil)) }

func addSecret(w *fake.World) {
	_ = w.Client.Create(context.Background(), fake.Secret(fake.SecretName, fake.Credentials(secretMark)))
}

func prefix(prefix string) func(*veleroLS) {
	return func(spec *veleroLS) { spec.ObjectStorage.Prefix = prefix }
}

func switchApproval(approval bool) func(*fake.World) {
	return func(w *fake.World) { w.RequireApproval(approval) }
}

func dropVeleroLocation(w *fake.World) { w.Remove(w.VeleroLocation(name)) }

func dropCopy(w *fake.World) { w.Remove(w.Copy(name)) }

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
	invalid := editLocation(prefix("../crew"))
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
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: secretMark,
		},
		"not made before approval": {
			approval: true, phase: "BackingOff", conditions: []string{accepted, pending}, request: true,
		},
		"made with approval": {
			approval: true, steps: steps(decide("approve")), request: true,
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: secretMark,
		},
		"not made when rejected": {
			approval: true, steps: steps(decide("reject")), request: true,
			phase: "BackingOff", conditions: []string{accepted, rejected},
		},
		"invalid": {
			approval: true, steps: steps(switchApproval(false), removeLocation, func(w *fake.World) {
				object := fake.NaBSL(name)
				object.Spec.BackupStorageLocationSpec.ObjectStorage.Prefix = "../crew"
				_ = w.Client.Create(context.Background(), object)
			}),
			phase: "BackingOff", conditions: []string{refused},
		},
		"edited, without approval": {
			steps: steps(editLocation(bucket("other"))),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, remade}, bucket: "other", copy: secretMark,
		},
		"edited to something invalid: what was made stays": {
			steps: steps(invalid),
			phase: "BackingOff", conditions: []string{refused, allowed, secretMade, made}, bucket: "bucket", copy: secretMark,
		},
		"edited to something invalid and back": {
			steps: steps(invalid, editLocation(prefix("backups"))),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: secretMark,
		},
		"edited with approval: the approved one stays": {
			approval: true, steps: steps(decide("approve"), editLocation(bucket("other"))), request: true,
			phase: "BackingOff", conditions: []string{accepted, pending, secretMade, made}, bucket: "bucket", copy: secretMark,
		},
		"edited to something invalid with approval: the approved one stays": {
			approval: true, steps: steps(decide("approve"), invalid), request: true,
			phase: "BackingOff", conditions: []string{refused, allowed, secretMade, made}, bucket: "bucket", copy: secretMark,
		},
		"approved when its tenant has left that spec for an invalid one: not yet": {
			approval: true, steps: steps(invalid, decide("approve")), request: true,
			phase: "BackingOff", conditions: []string{refused, pending},
		},
		"approved when its tenant has left that spec for an invalid one, and comes back": {
			approval: true, steps: steps(invalid, decide("approve"), editLocation(prefix("backups"))), request: true,
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: secretMark,
		},
		"edited and approved": {
			approval: true, steps: steps(decide("approve"), editLocation(bucket("other")), decide("approve")), request: true,
			phase: "Created", conditions: []string{accepted, allowed, secretMade, remade}, bucket: "other", copy: secretMark,
		},
		"edited and rejected: the approved one stays": {
			approval: true, steps: steps(decide("approve"), editLocation(bucket("other")), decide("reject")), request: true,
			phase: "BackingOff", conditions: []string{accepted, rejected, updateNo, secretMade, made}, bucket: "bucket", copy: secretMark,
		},
		"edited, rejected, and the Secret rotated: the approved one follows": {
			approval: true, request: true,
			steps: steps(decide("approve"), editLocation(bucket("other")), decide("reject"), rotate("Second")),
			phase: "BackingOff", conditions: []string{accepted, rejected, updateNo, secretNew, made}, bucket: "bucket", copy: "Second",
		},
		"edited, pending, and the Secret rotated: the approved one follows": {
			approval: true, request: true,
			steps: steps(decide("approve"), editLocation(bucket("other")), rotate("Second")),
			phase: "BackingOff", conditions: []string{accepted, pending, secretNew, made}, bucket: "bucket", copy: "Second",
		},
		"edited, rejected and edited back": {
			approval: true, request: true,
			steps: steps(decide("approve"), editLocation(bucket("other")), decide("reject"), editLocation(bucket("bucket"))),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: secretMark,
		},
		"revoked": {
			approval: true, steps: steps(decide("approve"), revoke), request: true,
			phase: "BackingOff", conditions: []string{accepted, pending},
		},
		"revoked and approved again": {
			approval: true, steps: steps(decide("approve"), revoke, decide("approve")), request: true,
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: secretMark,
		},
		"another Secret, without approval by anybody": {
			approval: true, request: true,
			steps: steps(decide("approve"), addOtherSecret, editLocation(credential("other"))),
			phase: "Created", conditions: []string{accepted, allowed, secretNew, made}, bucket: "bucket", copy: "Other",
		},
		"its Secret missing": {
			steps: steps(removeLocation, dropSecret, recreate), phase: "BackingOff", conditions: []string{refused},
		},
		"its Secret missing, then made": {
			steps: steps(removeLocation, dropSecret, recreate, addSecret),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: secretMark,
		},
		"its Secret missing, approval asked for when it is made": {
			approval: true, steps: steps(removeLocation, dropSecret, recreate, addSecret), request: true,
			phase: "BackingOff", conditions: []string{accepted, pending},
		},
		"its Secret gone later: the copy stays": {
			steps: steps(dropSecret),
			phase: "Created", conditions: []string{accepted, allowed, secretBad, made}, bucket: "bucket", copy: secretMark,
		},
		"its Secret gone later, with approval: the copy stays": {
			approval: true, steps: steps(decide("approve"), dropSecret), request: true,
			phase: "Created", conditions: []string{accepted, allowed, secretBad, made}, bucket: "bucket", copy: secretMark,
		},
		"its Secret gone and made again": {
			steps: steps(dropSecret, addSecret, rotate("Second")),
			phase: "Created", conditions: []string{accepted, allowed, secretNew, made}, bucket: "bucket", copy: "Second",
		},
		"its Secret gone before the approval": {
			approval: true, steps: steps(dropSecret, decide("approve")), request: true,
			phase: "BackingOff", conditions: []string{refused, pending, secretBad},
		},
		"its Secret gone before the approval, and made again": {
			approval: true, steps: steps(dropSecret, decide("approve"), addSecret), request: true,
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: secretMark,
		},
		"its Secret forbidden before the approval": {
			approval: true, steps: steps(forbid, decide("approve")), request: true,
			phase: "BackingOff", conditions: []string{refused, pending, secretBad},
		},
		"its Secret gone and the copy too, with approval": {
			approval: true, steps: steps(decide("approve"), dropSecret, dropCopy), request: true,
			phase: "Created", conditions: []string{accepted, allowed, secretBad, made}, bucket: "bucket",
		},
		"its Secret gone, and what was made for Velero deleted by hand: it comes back with the copy": {
			steps: steps(dropSecret, dropVeleroLocation),
			phase: "Created", conditions: []string{accepted, allowed, secretBad, made}, bucket: "bucket", copy: secretMark,
		},
		"its Secret forbidden, and what was made for Velero deleted by hand: it comes back with the copy": {
			steps: steps(forbid, dropVeleroLocation),
			phase: "Created", conditions: []string{accepted, allowed, secretBad, made}, bucket: "bucket", copy: secretMark,
		},
		"edited to a Secret that is not there, and what was made for Velero deleted by hand": {
			steps: steps(editLocation(func(spec *veleroLS) { spec.Credential.Name = "absent" }), dropVeleroLocation),
			phase: "BackingOff", conditions: []string{refused, allowed, secretBad}, copy: secretMark,
		},
		"accepted with another Secret, which goes before it is copied: the copy stays": {
			steps: steps(func(w *fake.World) {
				editLocation(func(spec *veleroLS) { spec.Credential.Name = "other" })(w)
				location := w.Location(name)
				location.Status.Conditions[0].ObservedGeneration = location.Generation
				_ = w.Client.Status().Update(context.Background(), location)
			}),
			phase: "Created", conditions: []string{accepted, allowed, secretBad, made}, bucket: "bucket", copy: secretMark,
		},
		"rotated": {
			steps: steps(rotate("Second")),
			phase: "Created", conditions: []string{accepted, allowed, secretNew, made}, bucket: "bucket", copy: "Second",
		},
		"of forbidden content": {
			steps: steps(removeLocation, forbid, recreate), phase: "BackingOff", conditions: []string{refused},
		},
		"of forbidden content, with approval": {
			approval: true, steps: steps(removeLocation, forbid, recreate), phase: "BackingOff", conditions: []string{refused},
		},
		"rotated to forbidden content: the copy stays": {
			steps: steps(forbid),
			phase: "Created", conditions: []string{accepted, allowed, secretBad, made}, bucket: "bucket", copy: secretMark,
		},
		"rotated to forbidden content, with approval: the copy stays": {
			approval: true, steps: steps(decide("approve"), forbid), request: true,
			phase: "Created", conditions: []string{accepted, allowed, secretBad, made}, bucket: "bucket", copy: secretMark,
		},
		"rotated to forbidden content and on": {
			steps: steps(forbid, rotate("Second")),
			phase: "Created", conditions: []string{accepted, allowed, secretNew, made}, bucket: "bucket", copy: "Second",
		},
		"the Velero BackupStorageLocation deleted by hand": {
			steps: steps(dropVeleroLocation),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: secretMark,
		},
		"the copy deleted by hand": {
			steps: steps(dropCopy),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: secretMark,
		},
		"the Velero BackupStorageLocation edited by hand": {
			steps: steps(func(w *fake.World) {
				object := w.VeleroLocation(name)
				object.Spec.ObjectStorage.Bucket = "mine"
				_ = w.Client.Update(context.Background(), object)
			}),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, remade}, bucket: "bucket", copy: secretMark,
		},
		"the copy edited by hand": {
			steps: steps(func(w *fake.World) {
				object := w.Copy(name)
				object.Data = map[string][]byte{fake.SecretKey: fake.Credentials("Mine"), "more": {1}}
				_ = w.Client.Update(context.Background(), object)
			}),
			phase: "Created", conditions: []string{accepted, allowed, secretNew, made}, bucket: "bucket", copy: secretMark,
		},
		"approval switched on": {
			steps: steps(switchApproval(true)), request: true, phase: "BackingOff", conditions: []string{accepted, pending},
		},
		"approval switched on while the spec is invalid": {
			steps: steps(invalid, switchApproval(true)), phase: "BackingOff", conditions: []string{refused},
		},
		"approval switched off": {
			approval: true, steps: steps(switchApproval(false)),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: secretMark,
		},
		"approval switched off after a rejection": {
			approval: true, steps: steps(decide("reject"), switchApproval(false)),
			phase: "Created", conditions: []string{accepted, allowed, secretMade, made}, bucket: "bucket", copy: secretMark,
		},
		"approval switched off and on": {
			approval: true, steps: steps(decide("approve"), switchApproval(false), switchApproval(true)), request: true,
			phase: "BackingOff", conditions: []string{accepted, pending},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			world := place(t, test.approval)
			settle(t, world)
			for _, step := range test.steps {
				step(world)
				settle(t, world)
			}
			assert.Equal(t, test.phase, world.Location(name).Status.Phase)
			assert.ElementsMatch(t, test.conditions, conditions(world))
			assert.Equal(t, test.bucket, bucketOf(world))
			assert.Equal(t, test.copy, copied(world))
			assert.Equal(t, test.request, world.ApprovalRequest(name) != nil)
			if made := world.Copy(name); made != nil {
				assert.Equal(t, corev1.SecretTypeOpaque, made.Type)
				assert.Len(t, made.Data, 1, "only the key that the spec names")
			}
			if made := world.VeleroLocation(name); made != nil {
				assert.Equal(t, fake.LocationName(name), made.Spec.Credential.Name)
				assert.Equal(t, fake.Namespace+"/backups", made.Spec.ObjectStorage.Prefix)
			}
		})
	}
}

func addOtherSecret(w *fake.World) {
	_ = w.Client.Create(context.Background(), fake.Secret("other", fake.Credentials("Other")))
}

func recreate(w *fake.World) { _ = w.Client.Create(context.Background(), fake.NaBSL(name)) }

// What Velero says of the location is shown to its tenant.
func TestVelerosWordOnALocationIsMirrored(t *testing.T) {
	world := place(t, false)
	settle(t, world)
	for _, phase := range []velerov1.BackupStorageLocationPhase{"Unavailable", "Available"} {
		world.Validate(name, phase, "rpc error: AccessDenied")
		settle(t, world)
		shown := world.Location(name).Status.VeleroBackupStorageLocation
		assert.Equal(t, phase, shown.Status.Phase)
		assert.Equal(t, "rpc error: AccessDenied", shown.Status.Message)
	}
}
