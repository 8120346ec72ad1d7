package k8s_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/k8s"
)

const oadpNamespace = "openshift-adp"

// rivalWorld is a cluster whose API server can be away.
type rivalWorld struct {
	*k8s.Rival
	client client.Client
	away   error
}

func newRivalWorld() *rivalWorld {
	w := &rivalWorld{}
	w.client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(k8s.Scheme()).Build(), interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption,
		) error {
			if w.away != nil {
				return w.away
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	w.Rival = &k8s.Rival{Reader: w.client, OADPNamespace: oadpNamespace}
	return w
}

func deployment(namespace, name string, replicas *int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: replicas},
	}
}

func TestHoldfastDoesNotActBesideTheNonAdminController(t *testing.T) {
	tests := map[string]struct {
		there *appsv1.Deployment
		want  string
	}{
		"absent":                    {nil, ""},
		"running":                   {deployment(oadpNamespace, "non-admin-controller", new(int32(1))), "serves these resources"},
		"running by default":        {deployment(oadpNamespace, "non-admin-controller", nil), "serves these resources"},
		"scaled to 0":               {deployment(oadpNamespace, "non-admin-controller", new(int32(0))), ""},
		"in another namespace":      {deployment("other", "non-admin-controller", nil), ""},
		"another deployment beside": {deployment(oadpNamespace, "velero", nil), ""},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newRivalWorld()
			if test.there != nil {
				require.NoError(t, w.client.Create(t.Context(), test.there))
			}
			probed := w.Probe(t.Context())
			if test.want == "" {
				require.NoError(t, probed)
				require.NoError(t, w.Err())
				return
			}
			require.ErrorContains(t, probed, test.want)
			require.ErrorContains(t, probed, "openshift-adp/non-admin-controller")
			require.ErrorIs(t, w.Err(), probed)
		})
	}
}

func TestHoldfastDoesNotActBeforeItKnows(t *testing.T) {
	w := newRivalWorld()
	require.ErrorContains(t, w.Err(), "not known yet")
	w.away = errors.New("connection refused")
	require.ErrorIs(t, w.Probe(t.Context()), w.away)
	require.ErrorContains(t, w.Err(), "not known yet", "no answer is no permission")
}

func TestWhileTheAPIServerIsAwayTheLastAnswerStands(t *testing.T) {
	w := newRivalWorld()
	require.NoError(t, w.Probe(t.Context()))
	w.away = errors.New("connection refused")
	require.ErrorIs(t, w.Probe(t.Context()), w.away)
	require.NoError(t, w.Err())

	w.away = nil
	rival := deployment(oadpNamespace, "non-admin-controller", nil)
	require.NoError(t, w.client.Create(t.Context(), rival))
	require.Error(t, w.Probe(t.Context()))
	w.away = errors.New("connection refused")
	require.ErrorIs(t, w.Probe(t.Context()), w.away)
	require.ErrorContains(t, w.Err(), "serves these resources")

	w.away = nil
	require.NoError(t, w.client.Delete(t.Context(), rival))
	require.NoError(t, w.Probe(t.Context()))
	assert.NoError(t, w.Err(), "once the rival is gone Holdfast acts again")
}
