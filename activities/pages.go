package activities

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ListPage is the page size of long lists.
const ListPage = 500

// EachPage lists objects page by page. The error is the API server's own.
func EachPage[T any, L interface {
	*T
	client.ObjectList
}](ctx context.Context, from client.Reader, visit func(L), options ...client.ListOption) error {
	for next := ""; ; {
		page := L(new(T))
		paged := append([]client.ListOption{client.Limit(ListPage), client.Continue(next)}, options...)
		if err := from.List(ctx, page, paged...); err != nil {
			return err
		}
		visit(page)
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}
