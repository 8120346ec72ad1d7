package activities

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// callTimeout limits one call of the API server: a call that hangs must not use up an attempt.
const callTimeout = 5 * time.Second

// Limited returns a client whose calls do not hang.
func Limited(to client.Client) client.Client { return limitedClient{to} }

type limitedClient struct{ client.Client }

// Get implements client.Reader.
func (c limitedClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.Client.Get(ctx, key, object, opts...)
}

// List implements client.Reader.
func (c limitedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.Client.List(ctx, list, opts...)
}

// Patch implements client.Writer.
func (c limitedClient) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.Client.Patch(ctx, object, patch, opts...)
}

// Delete implements client.Writer.
func (c limitedClient) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.Client.Delete(ctx, object, opts...)
}
