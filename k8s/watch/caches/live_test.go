package caches

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/activities/fake"
)

func TestMetadataAreReadPageByPage(t *testing.T) {
	world := fake.New(t)
	var asked []string
	api := interceptor.NewClient(world.Client, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			given := (&client.ListOptions{}).ApplyOptions(options)
			asked = append(asked, given.Continue)
			assert.EqualValues(t, metadataPageSize, given.Limit)
			assert.Len(t, pages, 1, "informers wait")
			page := list.(*metav1.PartialObjectMetadataList)
			page.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "on-page-" + given.Continue}}}
			page.Continue = map[string]string{"": "2", "2": "3", "3": ""}[given.Continue]
			return nil
		},
	})
	live := NewLive(Source{Cache: world.Client, API: api, Refused: func(error) {}, Trim: trimmed, Log: zap.NewNop()})
	var found []string
	err := live.listMetadata(t.Context(), &velerov1.Backup{}, fake.OADPNamespace, func(o *metav1.PartialObjectMetadata) error {
		found = append(found, o.Name)
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"", "2", "3"}, asked)
	assert.Equal(t, []string{"on-page-", "on-page-2", "on-page-3"}, found)
}
