package restore

import (
	"context"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// Gatherer reads one NonAdminRestore and all that belongs to it. Reader is the API server in the worker, the cache in the
// watcher.
type Gatherer struct {
	Reader        client.Reader
	Policy        policy.Getter
	ClusterID     string
	OADPNamespace string
	// Allowlists is nil in the watcher, which does not judge what may be restored from a tenant's location. So a restore that
	// is BackingOff for that reason is never settled for the watcher, and is judged again at every event of its location, and
	// every resync.
	Allowlists AllowlistSource
}

// Objects is one NonAdminRestore and what belongs to it, as read. The objects are the reader's own: copy before changing.
type Objects struct {
	// NAR is nil if no object of the requested UID exists.
	NAR *oadpv1alpha1.NonAdminRestore
	// RestoreName is the name of the one Velero Restore that may belong to NAR, whether it exists or not.
	RestoreName string
	// Restore is that Velero Restore; nil when absent, and nil when it does not name NAR as its origin.
	Restore *velerov1.Restore
	// Adopted: the Velero Restore was made by the OADP non-admin controller, before Holdfast was installed, under a name of its
	// own.
	Adopted bool
	// Foreign: a Velero Restore of the name RestoreName exists and belongs to something else.
	Foreign bool
	// NamespaceTerminating is read only when NAR is being deleted.
	NamespaceTerminating bool
	// Verdict on the present spec; read only in phase BackingOff.
	Verdict *check.Verdict
	// Source is the backup by which the spec was judged, and Rules the policy; Rules is nil if it was not judged since the
	// objects were read.
	Source restorespec.Source
	Rules  *policy.Policy

	// modifier is what the Velero Restore needs from a tenant's storage location; nil if the spec was refused.
	modifier *corev1.ConfigMap
	// turnUsed: the Velero Restore was made with a turn since the objects were read.
	turnUsed bool
}

// waits: the status says that the object waits for its turn before Velero.
func (o *Objects) waits() bool {
	return o.Restore == nil && o.NAR.DeletionTimestamp.IsZero() && !lifecycle.EverCreated(o.NAR) &&
		k8s.WaitsForTurn(o.NAR.Status.Conditions)
}

// Gather reads the objects. An error means that one could not be read, never that something is absent or invalid.
func (g *Gatherer) Gather(ctx context.Context, ref contract.ObjectRef) (*Objects, error) {
	nar := &oadpv1alpha1.NonAdminRestore{}
	err := g.Reader.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, nar)
	if apierrors.IsNotFound(err) || (err == nil && string(nar.UID) != ref.UID) {
		return &Objects{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get NonAdminRestore %s: %w", ref, err)
	}
	objects := &Objects{NAR: nar}
	if err := g.findRestore(ctx, objects); err != nil {
		return nil, err
	}
	if !nar.DeletionTimestamp.IsZero() {
		objects.NamespaceTerminating, err = k8s.NamespaceTerminating(ctx, g.Reader, nar.Namespace)
		return objects, err
	}
	if nar.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff {
		verdict, err := g.Judge(ctx, objects)
		if err != nil {
			return nil, err
		}
		objects.Verdict = &verdict
	}
	return objects, nil
}

func (g *Gatherer) finder() velero.Finder {
	return velero.Finder{Reader: g.Reader, ClusterID: g.ClusterID, OADPNamespace: g.OADPNamespace}
}

// findRestore finds the Velero Restore that belongs to the NAR.
func (g *Gatherer) findRestore(ctx context.Context, o *Objects) error {
	found, err := g.finder().Restore(ctx, o.NAR)
	o.RestoreName, o.Restore, o.Foreign = found.Name, found.Made, found.Foreign
	o.Adopted = found.Name != g.finder().OwnName(o.NAR)
	return err
}

// readSource reads the backup that the spec names, and what may be restored from it.
func (g *Gatherer) readSource(
	ctx context.Context, nar *oadpv1alpha1.NonAdminRestore, rules policy.Policy,
) (restorespec.Source, error) {
	if nar.Spec.RestoreSpec == nil {
		return restorespec.Source{}, nil
	}
	source, err := g.SourceOf(ctx, nar.Namespace, nar.Spec.RestoreSpec.BackupName)
	if err == nil && source.Tenants() && g.Allowlists != nil {
		source.Allowlist, err = g.Allowlists.Allowlist(ctx, rules.RestoreFromTenantsLocations)
	}
	return source, err
}

// SourceOf reads the NonAdminBackup of a name, with its objects as far as they exist. Another tenant's objects count as absent.
func (g *Gatherer) SourceOf(ctx context.Context, namespace, name string) (restorespec.Source, error) {
	var source restorespec.Source
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return source, nil // no object has such a name
	}
	nab := &oadpv1alpha1.NonAdminBackup{}
	exists, err := k8s.Get(ctx, g.Reader, oadpv1alpha1.KindNonAdminBackup, namespace, name, nab)
	if err != nil || !exists {
		return source, err
	}
	source.NAB = nab
	found, err := g.finder().Backup(ctx, nab)
	if err != nil || found.Made == nil {
		return source, err
	}
	source.Backup = found.Made
	holder := source.Backup.Spec.StorageLocation
	if holder == "" {
		return source, nil // Velero has not started the backup
	}
	location := &velerov1.BackupStorageLocation{}
	exists, err = k8s.Get(ctx, g.Reader, "Velero BackupStorageLocation", g.OADPNamespace, holder, location)
	if err == nil && exists {
		source.Location = location
	}
	return source, err
}
