package fdb

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/k8s/watch/caches"
)

// A cluster without FoundationDB's operator is healthy; one whose operator is there, but may not be watched, is not.
func TestAClusterKindThatIsNotServedIsNoRefusal(t *testing.T) {
	clusters := schema.GroupResource{Group: foundationdbv1beta2.GroupVersion.Group, Resource: "foundationdbclusters"}
	reflector := toolscache.NewReflector(&toolscache.ListWatch{}, &foundationdbv1beta2.FoundationDBCluster{}, nil, 0)
	refusals := &caches.Refusals{}
	handle := onceServed(refusals)
	handle(t.Context(), reflector, apierrors.NewNotFound(clusters, ""))
	require.NoError(t, refusals.Recent())
	handle(t.Context(), reflector, apierrors.NewForbidden(clusters, "", nil))
	assert.ErrorContains(t, refusals.Recent(), "foundationdbclusters")
}
