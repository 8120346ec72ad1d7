package outage_test

import (
	"context"
	"errors"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// claim creates the case's PersistentVolumeClaim, which nothing binds until there is a volume for it.
func (c *testCase) claim() {
	c.t.Helper()
	require.NoError(c.t, c.admin.Create(c.t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "data", Labels: seeded()},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(""), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}))
}

// pod creates a Pod that nobody runs.
func (c *testCase) pod() {
	c.t.Helper()
	require.NoError(c.t, c.admin.Create(c.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "idle", Labels: seeded()},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "idle", Image: "idle"}}},
	}))
}

func seeded() map[string]string { return map[string]string{"app": "seed"} }

// reserveVolume makes a volume as a provisioner would for the restored claim.
func (c *testCase) reserveVolume() {
	c.t.Helper()
	require.NoError(c.t, c.admin.Create(c.t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: c.namespace + "-data", Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "example.com/provisioner"},
		},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere/" + c.namespace},
			},
			ClaimRef:                      &corev1.ObjectReference{Namespace: c.namespace, Name: "data"},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		},
	}))
}

// refuseClaims has the API server refuse the claim when it is to come back.
func (c *testCase) refuseClaims() {
	c.t.Helper()
	require.NoError(c.t, c.admin.Create(c.t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "large-only"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypePersistentVolumeClaim,
			Min:  corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
		}}},
	}))
}

// lose deletes what is backed up.
func (c *testCase) lose() {
	c.t.Helper()
	kinds := []client.Object{&corev1.ConfigMap{}, &corev1.PersistentVolumeClaim{}, &corev1.Pod{}}
	for _, kind := range kinds {
		require.NoError(c.t, c.admin.DeleteAllOf(c.t.Context(), kind,
			client.InNamespace(c.namespace), client.MatchingLabels(seeded()), client.GracePeriodSeconds(0)))
	}
	c.poll(patience, func() error {
		key := client.ObjectKey{Namespace: c.namespace, Name: "data"}
		err := c.admin.Get(context.Background(), key, &corev1.PersistentVolumeClaim{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return errors.New("the claim is there")
	})
}
