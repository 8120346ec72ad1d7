package velero

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/starter/watch/watchtest"
)

type (
	nabsl              = oadpv1alpha1.NonAdminBackupStorageLocation
	veleroLocationSpec = velerov1.BackupStorageLocationSpec
)

func byForce(requests ...Request) []added {
	for i := range requests {
		requests[i].Force = true
	}
	return atOnce(requests...)
}

func TestWhatOfALocationIsWorthALook(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	known := fake.NaBSL(name)
	known.Finalizers = []string{oadpv1alpha1.NabslFinalizer}
	known.Status.Phase = oadpv1alpha1.NonAdminPhaseCreated
	other := request(name)
	other.UID = "uid-of-the-one-after"
	tests := map[string]struct {
		change func(*nabsl)
		want   []added
	}{
		"nothing": {change: func(*nabsl) {}},
		"status alone": {change: func(l *nabsl) {
			l.Status.Conditions = []metav1.Condition{{Type: "Accepted"}}
		}},
		"an annotation":    {change: func(l *nabsl) { l.Annotations = map[string]string{"a": "b"} }},
		"the spec":         {change: func(l *nabsl) { l.Generation++ }, want: atOnce(request(name))},
		"its deletion":     {change: func(l *nabsl) { l.DeletionTimestamp = &now }, want: atOnce(request(name))},
		"a label":          {change: func(l *nabsl) { l.Labels = map[string]string{"a": "b"} }, want: atOnce(request(name))},
		"our finalizer":    {change: func(l *nabsl) { l.Finalizers = nil }, want: atOnce(request(name))},
		"a rejection":      {change: func(l *nabsl) { l.Status.Phase = "BackingOff" }, want: atOnce(request(name))},
		"its successor":    {change: func(l *nabsl) { l.UID = "uid-of-the-one-after" }, want: atOnce(request(name), other)},
		"another phase":    {change: func(l *nabsl) { l.Status.Phase = "Deleting" }},
		"their finalizers": {change: func(l *nabsl) { l.Finalizers = append(l.Finalizers, "x/y") }},
	}
	s := newStation(t)
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			assert.Equal(t, test.want, watchtest.Happens(t.Context(), s.locations.locationEvents(), known, edited(known, test.change)))
		})
	}
	assert.Equal(t, atOnce(request(name)), watchtest.Happens(t.Context(), s.locations.locationEvents(), nil, known))
	assert.Equal(t, atOnce(request(name)), watchtest.Happens(t.Context(), s.locations.locationEvents(), known, nil))
	unseen := fake.NaBSL(name)
	unseen.Status.Conditions = []metav1.Condition{{
		Type: "Accepted", Status: metav1.ConditionFalse, ObservedGeneration: 1,
		Message: `BSL credentials secret "keys" key "cloud" cannot be used: there is nothing in it`,
	}}
	assert.Equal(t, byForce(request(name)), watchtest.Happens(t.Context(), s.locations.locationEvents(), nil, unseen),
		"the Secret may have changed while nobody watched")
}

// marked marks an object as made for the location.
func marked[T client.Object](object T) T {
	object.SetNamespace(fake.OADPNamespace)
	object.SetName(fake.LocationName(name))
	object.SetLabels(map[string]string{
		oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue, oadpv1alpha1.NabslOriginNACUUIDLabel: fake.LocationName(name),
	})
	object.SetAnnotations(map[string]string{
		oadpv1alpha1.NabslOriginNamespaceAnnotation: fake.Namespace, oadpv1alpha1.NabslOriginNameAnnotation: name,
	})
	return object
}

func TestWhatHappensToWhatWasMadeIsWorthALookAtItsLocation(t *testing.T) {
	s := newStation(t, fake.NaBSL(name))
	made := marked(&velerov1.BackupStorageLocation{})
	asked := marked(&oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest{})
	secret := marked(&metav1.PartialObjectMetadata{})
	secret.Annotations[oadpv1alpha1.CopiedVersionAnnotation] = "a/1"
	look, force := atOnce(request(name)), byForce(request(name))
	before := request(name)
	before.UID = "uid-of-the-one-before"
	velero, requests, secrets := s.locations.veleroEvents(), s.locations.requestEvents(), s.locations.secretEvents()
	type location = velerov1.BackupStorageLocation
	tests := map[string]struct {
		handler       events
		before, after client.Object
		want          []added
	}{
		"made": {handler: velero, after: made, want: look},
		"gone": {handler: velero, before: made, want: look},
		"validated with another Secret": {handler: velero, before: edited(made, func(l *location) {
			l.Annotations[oadpv1alpha1.CopiedVersionAnnotation] = "a/1"
		}), after: edited(made, func(l *location) {
			l.Annotations[oadpv1alpha1.CopiedVersionAnnotation], l.Status.LastValidationTime = "a/1", &metav1.Time{}
		}), want: look},
		"looked at by Velero": {handler: velero, before: made, after: edited(made, func(l *location) { l.Status.LastValidationTime = &metav1.Time{} })},
		"available":           {handler: velero, before: made, after: edited(made, func(l *location) { l.Status.Phase = "Available" }), want: look},
		"the same message of another request": {
			handler: velero, before: edited(made, func(l *location) { l.Status.Message = "RequestID: 1, HostID: a, api error AccessDenied" }),
			after: edited(made, func(l *location) { l.Status.Message = "RequestID: 2, HostID: b, api error AccessDenied" }),
		},
		"another message":         {handler: velero, before: made, after: edited(made, func(l *location) { l.Status.Message = "AccessDenied" }), want: look},
		"edited by hand":          {handler: velero, before: made, after: edited(made, func(l *location) { l.Generation++ }), want: look},
		"labels by hand":          {handler: velero, before: made, after: edited(made, func(l *location) { l.Labels["a"] = "b" }), want: look},
		"replaced":                {handler: velero, before: made, after: edited(made, func(l *location) { l.UID = "other" }), want: look},
		"an administrator's":      {handler: velero, after: edited(made, func(l *location) { l.Labels = nil })},
		"in another namespace":    {handler: velero, after: edited(made, func(l *location) { l.Namespace = "team" })},
		"of a location not there": {handler: velero, after: edited(made, func(l *location) { l.Annotations[oadpv1alpha1.NabslOriginNameAnnotation] = "x" })},
		"of a location whose name another has now": {handler: velero, after: edited(made, func(l *location) {
			l.Annotations[oadpv1alpha1.NabslOriginUIDAnnotation] = "uid-of-the-one-before"
		}), want: atOnce(request(name), before)},
		"of a location that is gone": {handler: velero, after: edited(made, func(l *location) {
			l.Annotations[oadpv1alpha1.NabslOriginNameAnnotation] = "gone"
			l.Annotations[oadpv1alpha1.NabslOriginUIDAnnotation] = "uid-gone"
		}), want: atOnce(request("gone"))},
		"a request":                {handler: requests, after: asked, want: look},
		"a request gone":           {handler: requests, before: asked, want: look},
		"a request listed again":   {handler: requests, before: asked, after: asked.DeepCopy()},
		"a decision":               {handler: requests, before: asked, after: edited(asked, func(r *approvalRequest) { r.Spec.RevokeApprovedSpec = true }), want: look},
		"the copy gone":            {handler: secrets, before: secret, want: look},
		"the copy listed again":    {handler: secrets, before: secret, after: secret.DeepCopy()},
		"the copy changed by hand": {handler: secrets, before: secret, after: edited(secret, func(*metav1.PartialObjectMetadata) {}), want: force},
		"the copy changed by us": {handler: secrets, before: secret, after: edited(secret, func(c *metav1.PartialObjectMetadata) {
			c.Annotations[oadpv1alpha1.CopiedVersionAnnotation] = "a/2"
		}), want: look},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			assert.Equal(t, test.want, watchtest.Happens(t.Context(), test.handler, test.before, test.after))
		})
	}
}

type approvalRequest = oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest

func TestATenantsSecretIsWorthALookAtTheLocationsThatItMayConcern(t *testing.T) {
	location := func(name, phase, secret string) *nabsl {
		object := fake.NaBSL(name)
		object.Status.Phase = oadpv1alpha1.NonAdminPhase(phase)
		object.Spec.BackupStorageLocationSpec.Credential.Name = secret
		return object
	}
	stranger := location("theirs", "BackingOff", "keys")
	stranger.Namespace = "crew"
	empty := fake.NaBSL("empty")
	empty.Spec.BackupStorageLocationSpec = nil
	s := newStation(t, location("created", "Created", "keys"), location("waits", "BackingOff", "keys"),
		location("other", "Created", "x"), location("other-waits", "BackingOff", "x"), stranger, empty)
	force := request("waits")
	force.Force = true
	want := atOnce(request("created"), request("empty"), request("other-waits"), force)
	secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: fake.Namespace, Name: "keys", ResourceVersion: "1"}}
	handler := s.locations.secretEvents()
	assert.ElementsMatch(t, want, watchtest.Happens(t.Context(), handler, nil, secret))
	assert.ElementsMatch(t, want, watchtest.Happens(t.Context(), handler, secret, nil))
	assert.ElementsMatch(t, want, watchtest.Happens(t.Context(), handler, secret, edited(secret, func(*metav1.PartialObjectMetadata) {})))
	assert.Empty(t, watchtest.Happens(t.Context(), handler, secret, secret.DeepCopy()), "listed again")
}
