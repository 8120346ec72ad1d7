package restore

import (
	"fmt"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
)

// NewVeleroRestore builds the Velero Restore for a NonAdminRestore. The name is deterministic: a second creation ends in
// AlreadyExists.
func NewVeleroRestore(
	nar *oadpv1alpha1.NonAdminRestore, name, oadpNamespace string, spec velerov1.RestoreSpec,
) *velerov1.Restore {
	return &velerov1.Restore{ObjectMeta: owner.Restore.Meta(nar, name, oadpNamespace, name), Spec: spec}
}

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

// NewDownloadRequest builds the request by which Velero signs a URL for a file of the Velero Restore of a NonAdminRestore. The
// name is deterministic, so that a request left by a killed process is found again.
func NewDownloadRequest(
	nar *oadpv1alpha1.NonAdminRestore, restore *velerov1.Restore, file velerov1.DownloadTargetKind,
) *velerov1.DownloadRequest {
	name := fmt.Sprintf("%s-%s", restore.Name, strings.ToLower(string(file)))
	return &velerov1.DownloadRequest{
		ObjectMeta: owner.Restore.Meta(nar, restore.Name, restore.Namespace, name),
		Spec:       velerov1.DownloadRequestSpec{Target: velerov1.DownloadTarget{Kind: file, Name: restore.Name}},
	}
}
