package activities

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/activity"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ListMetadata lists the metadata of all objects of a kind, page by page: for thousands of objects nothing else is transferred.
func ListMetadata(
	ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, options ...client.ListOption,
) ([]metav1.PartialObjectMetadata, error) {
	var all []metav1.PartialObjectMetadata
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		page := append([]client.ListOption{client.Limit(ListPage), client.Continue(next)}, options...)
		if err := reader.List(ctx, list, page...); err != nil {
			return nil, fmt.Errorf("list the metadata of %s: %w", kind.Kind, err)
		}
		activity.RecordHeartbeat(ctx)
		all = append(all, list.Items...)
		if next = list.GetContinue(); next == "" {
			return all, nil
		}
	}
}
