package k8s

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BoundPatch is a JSON merge patch from before to the patched object that carries before's UID and resourceVersion. It
// writes only what changed, so a tenant's spec stays as the tenant wrote it, and the API server refuses it (Conflict)
// when the object has changed since it was read, or is another one of the same name. A timed-out attempt that arrives
// late therefore does no harm.
func BoundPatch(before client.Object) client.Patch {
	return boundPatch{
		before: before,
		inner: client.MergeFromWithOptions(before.DeepCopyObject().(client.Object),
			client.MergeFromWithOptimisticLock{}),
	}
}

type boundPatch struct {
	before client.Object
	inner  client.Patch
}

// Type implements client.Patch.
func (p boundPatch) Type() types.PatchType { return types.MergePatchType }

// Data implements client.Patch.
func (p boundPatch) Data(after client.Object) ([]byte, error) {
	data, err := p.inner.Data(after)
	if err != nil {
		return nil, fmt.Errorf("compute patch: %w", err)
	}
	var patch map[string]any
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, fmt.Errorf("read patch: %w", err)
	}
	metadata, ok := patch["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("patch of %s carries no resourceVersion", client.ObjectKeyFromObject(p.before))
	}
	metadata["uid"] = string(p.before.GetUID())
	return json.Marshal(patch)
}
