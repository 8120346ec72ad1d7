package finalization

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s/objectstore"
)

var wanted = objectstore.PVSettings{ReclaimPolicy: "Retain", Labels: map[string]string{
	"disk": "fast", "example.com/owner": "team",
	"topology.kubernetes.io/zone": "old-zone", "failure-domain.beta.kubernetes.io/zone": "old-zone", "csi.k8s.io/x": "y",
	"topology.ebs.csi.aws.com/zone": "old-zone", "velero.io/restore-name": "another", "openshift.io/oadp": "True",
}}

func TestNewVolumesGetTheSettingsOfTheBackupOnce(t *testing.T) {
	s := newScene(t, claim("data", "pv-new"), provisioned("pv-new", "data", map[string]string{
		"topology.kubernetes.io/zone": "here", "mine": "stays",
	}))
	s.putVolumes(info("data", wanted))
	for range 2 { // killed in between, and done again
		found, err := s.run(volumesTask{})
		require.NoError(t, err)
		assert.Zero(t, found.Warnings.Count()+found.Errors.Count())
	}
	volume := s.volume("pv-new")
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, volume.Spec.PersistentVolumeReclaimPolicy)
	assert.Equal(t, map[string]string{
		"disk": "fast", "example.com/owner": "team", "mine": "stays", "topology.kubernetes.io/zone": "here",
	}, volume.Labels)
	assert.Equal(t, []string{"patch pv-new"}, s.writes)
}

func TestAVolumeThatIsNotTheRestoresIsLeftAlone(t *testing.T) {
	notOurs := func(change func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, *objectstore.VolumeInfo)) *scene {
		made, volume, noted := claim("data", "pv-new"), provisioned("pv-new", "data", nil), info("data", wanted)
		change(made, volume, &noted)
		s := newScene(t, made, volume)
		s.putVolumes(noted)
		return s
	}
	type (
		pvc = corev1.PersistentVolumeClaim
		pv  = corev1.PersistentVolume
		vi  = objectstore.VolumeInfo
	)
	for title, change := range map[string]func(*pvc, *pv, *vi){
		"a claim of another restore":           func(c *pvc, _ *pv, _ *vi) { c.Labels = labelled("another") },
		"a claim of another namespace":         func(c *pvc, _ *pv, _ *vi) { c.Namespace = "crew" },
		"bound to a claim that had that name":  func(_ *pvc, v *pv, _ *vi) { v.Spec.ClaimRef.UID = "another" },
		"bound to a claim of another name":     func(_ *pvc, v *pv, _ *vi) { v.Spec.ClaimRef.Name = "another" },
		"bound in another namespace":           func(_ *pvc, v *pv, _ *vi) { v.Spec.ClaimRef.Namespace = "crew" },
		"bound to nobody":                      func(_ *pvc, v *pv, _ *vi) { v.Spec.ClaimRef = nil },
		"not bound":                            func(_ *pvc, v *pv, _ *vi) { v.Status.Phase = corev1.VolumeReleased },
		"made by an administrator":             func(_ *pvc, v *pv, _ *vi) { v.Annotations = nil },
		"not newly provisioned":                func(_ *pvc, _ *pv, i *vi) { i.BackupMethod = "NativeSnapshot" },
		"left out of the backup":               func(_ *pvc, _ *pv, i *vi) { i.Skipped = true },
		"noted for another namespace":          func(_ *pvc, _ *pv, i *vi) { i.PVCNamespace = "crew" },
		"noted for another claim, by its name": func(_ *pvc, _ *pv, i *vi) { i.PVCName, i.PVName = "other", "pv-new" },
		"noted without settings":               func(_ *pvc, _ *pv, i *vi) { i.PVInfo = nil },
	} {
		t.Run(title, func(t *testing.T) {
			s := notOurs(change)
			found, err := s.run(volumesTask{})
			require.NoError(t, err)
			assert.Zero(t, found.Errors.Count())
			assert.Empty(t, s.writes)
			assert.Empty(t, s.volume("pv-new").Labels)
		})
	}
}

func TestTopologyThatVeleroHasOverwrittenIsReported(t *testing.T) {
	const zone = "topology.kubernetes.io/zone"
	for title, test := range map[string]struct {
		volume *corev1.PersistentVolume
		want   string
	}{
		"the same key":        {zoned(provisioned("pv", "data", map[string]string{zone: "old"}), zone, "new"), "label " + zone + "=old contradicts"},
		"a driver's own key":  {zoned(provisioned("pv", "data", map[string]string{zone: "old"}), "topology.ebs.csi.aws.com/zone", "new"), "(new)"},
		"as it should be":     {zoned(provisioned("pv", "data", map[string]string{zone: "new"}), zone, "new"), ""},
		"another key":         {zoned(provisioned("pv", "data", map[string]string{"zone": "old"}), zone, "new"), ""},
		"nobody knows where":  {provisioned("pv", "data", map[string]string{zone: "old"}), ""},
		"region, known: zone": {zoned(provisioned("pv", "data", map[string]string{"topology.kubernetes.io/region": "old"}), zone, "new"), ""},
	} {
		t.Run(title, func(t *testing.T) {
			s := newScene(t, claim("data", "pv"), test.volume)
			s.putVolumes(info("data", objectstore.PVSettings{ReclaimPolicy: "Delete", Labels: map[string]string{zone: "old"}}))
			before := s.volume("pv").Labels
			found, err := s.run(volumesTask{})
			require.NoError(t, err)
			assert.Equal(t, test.want != "", found.Warnings.Count() == 1)
			assert.Contains(t, strings.Join(found.Warnings.Cluster, ""), test.want)
			assert.Equal(t, before, s.volume("pv").Labels, "not guessed")
		})
	}
}

func TestWhatABucketSaysIsNotTrusted(t *testing.T) {
	labels := map[string]string{"bad key!": "x", "good": "bad value!", "ok": "v"}
	s := newScene(t, claim("data", "pv"), provisioned("pv", "data", nil))
	s.putVolumes(info("data", objectstore.PVSettings{ReclaimPolicy: "Recycle", Labels: labels}))
	found, err := s.run(volumesTask{})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"PersistentVolume pv: 2 labels of the backup are not valid or too many, and were not set",
		"PersistentVolume pv: the backup's reclaim policy is not valid for a new volume",
	}, found.Warnings.Cluster)
	assert.Equal(t, map[string]string{"ok": "v"}, s.volume("pv").Labels)
	assert.Equal(t, corev1.PersistentVolumeReclaimDelete, s.volume("pv").Spec.PersistentVolumeReclaimPolicy)

	many := map[string]string{}
	for i := range 300 {
		many["l"+strings.Repeat("x", i%60)+string(rune('a'+i/60))] = "v"
	}
	set, _ := labelsToSet(provisioned("pv", "data", nil), many)
	assert.Len(t, set, maxVolumeLabels)
}

func TestItWaitsForAClaimThatWillBeBound(t *testing.T) {
	late := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, VolumeBindingMode: &late}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "web"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
		Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}},
	}}}}
	for title, test := range map[string]struct {
		objects []client.Object
		expired bool
		waits   bool
	}{
		"at once":                                {waits: true},
		"until the time is over":                 {expired: true},
		"not without a consumer":                 {objects: []client.Object{class}},
		"with a consumer":                        {objects: []client.Object{class, pod}, waits: true},
		"with a consumer, when the time is over": {objects: []client.Object{class, pod}, expired: true},
	} {
		t.Run(title, func(t *testing.T) {
			objects := append([]client.Object{claim("data", ""), claim("more", "pv"), provisioned("pv", "more", nil)}, test.objects...)
			for i := range objects {
				objects[i] = objects[i].DeepCopyObject().(client.Object)
			}
			s := newScene(t, objects...)
			s.Expired = test.expired
			s.putVolumes(info("data", wanted), info("more", wanted))
			found, err := s.run(volumesTask{})
			var waits *activities.NotYetError
			assert.Equal(t, test.waits, errors.As(err, &waits))
			if !test.waits {
				require.NoError(t, err)
			}
			assert.Zero(t, found.Errors.Count())
			assert.Equal(t, "fast", s.volume("pv").Labels["disk"], "others do not wait")
		})
	}
}

func TestABackupOfAnOldVeleroHasNoNotes(t *testing.T) {
	s := newScene(t, claim("data", "pv"), provisioned("pv", "data", nil))
	found, err := s.run(volumesTask{})
	require.NoError(t, err)
	assert.Zero(t, found.Warnings.Count()+found.Errors.Count())
}

func TestWhatTheAPIServerRefusesIsToldInTheEnd(t *testing.T) {
	for title, test := range map[string]struct {
		answer    error
		wantEarly bool // told before the time is over
		wantLate  bool
	}{
		"invalid":    {apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PersistentVolume").GroupKind(), "pv", nil), true, true},
		"forbidden":  {apierrors.NewForbidden(corev1.Resource("persistentvolumes"), "pv", nil), false, true},
		"away":       {errors.New("connection refused"), false, false},
		"a conflict": {apierrors.NewConflict(corev1.Resource("persistentvolumes"), "pv", nil), false, false},
	} {
		t.Run(title, func(t *testing.T) {
			for _, expired := range []bool{false, true} {
				s := newScene(t, claim("data", "pv"), provisioned("pv", "data", nil))
				s.putVolumes(info("data", wanted))
				s.refuse = func(string, client.Object) error { return test.answer }
				s.Expired = expired
				found, err := s.run(volumesTask{})
				told := test.wantEarly || (expired && test.wantLate)
				assert.Equal(t, told, found.Errors.Count() == 1, "expired %v", expired)
				assert.Equal(t, told, err == nil, "expired %v: %v", expired, err)
			}
		})
	}
}
