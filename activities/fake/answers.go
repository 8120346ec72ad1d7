package fake

import (
	"context"
	"errors"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/k8s/velero"
)

func (w *World) interceptors() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := w.read(o); err != nil {
				return err
			}
			err := c.Get(ctx, key, o, opts...)
			if newer, is := o.(*unstructured.Unstructured); is && err == nil && newer.GetKind() == "DownloadRequest" && w.Refusal != "" {
				err = unstructured.SetNestedField(newer.Object, w.Refusal, "status", "message")
			}
			w.prune(o)
			return err
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := w.read(list); err != nil {
				return err
			}
			err := c.List(ctx, list, opts...)
			w.prune(list)
			return err
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetUID() == "" {
				o.SetUID(types.UID("uid-" + o.GetName()))
				if _, is := o.(*velerov1.Backup); is { // what brought it back is judged by it
					o.SetCreationTimestamp(metav1.Now())
				}
			}
			if request, is := o.(*velerov1.DownloadRequest); is && w.Sign != nil {
				request.Status.Phase, request.Status.DownloadURL = velerov1.DownloadRequestPhaseProcessed, w.Sign(request)
			}
			if request, is := o.(*velerov1.DownloadRequest); is && w.Refusal != "" {
				request.Status.Phase = velero.DownloadRequestFailed
			}
			return w.write("create", o, func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return w.write("delete", o, func() error {
				if err := sameUID(ctx, c, o, opts); err != nil {
					return err
				}
				return c.Delete(ctx, o, opts...)
			})
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			defer w.prune(o)
			return w.write("patch", o, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			defer w.prune(o)
			return w.write("patch "+sub, o, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	}
}

// sameUID refuses the deletion of an object of another UID than asked for, as the API server does and the fake does not.
func sameUID(ctx context.Context, c client.Client, object client.Object, opts []client.DeleteOption) error {
	asked := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions
	if asked == nil || asked.UID == nil {
		return nil
	}
	present := object.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), present); err != nil {
		return client.IgnoreNotFound(err)
	}
	if present.GetUID() != *asked.UID {
		return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), errors.New("the UID in the precondition does not match"))
	}
	return nil
}
