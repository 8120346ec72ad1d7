package restore

import (
	corev1 "k8s.io/api/core/v1"

	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
)

// NewModifier builds the ConfigMap by which Velero changes what it restores from a tenant's storage location, from objects that
// were judged. It has the name of the Velero Restore. A *check.InvalidSpecError says that no ConfigMap can
// hold it.
func NewModifier(o *Objects, oadpNamespace string) (*corev1.ConfigMap, error) {
	mark := restorespec.Mark{Into: o.NAR.Namespace, OADPNamespace: oadpNamespace, By: o.RestoreName}
	text, err := restorespec.Modifier(o.NAR, o.Source, *o.Rules, mark)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		ObjectMeta: owner.Restore.Meta(o.NAR, o.RestoreName, oadpNamespace, o.RestoreName),
		Data:       map[string]string{restorespec.ModifierKey: text},
	}, nil
}
