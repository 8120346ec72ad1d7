package location

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/workflows/contract"
)

// Gatherer reads one NonAdminBackupStorageLocation and all that belongs to it. Reader is the API server in the worker, the
// cache in the watcher.
type Gatherer struct {
	Reader        client.Reader
	Policy        policy.Getter
	ClusterID     string
	OADPNamespace string
	// ReadSecrets: the content of Secrets is read too. The watcher has only their metadata.
	ReadSecrets bool
}

// Objects is one NonAdminBackupStorageLocation and what belongs to it, as read. The objects are the reader's own: copy before
// changing. Objects of the OADP namespace that do not name it as their origin count as absent.
type Objects struct {
	// Ref is the requested object. Location is nil if no object of that UID exists; what was made for it is read even then.
	Ref      contract.ObjectRef
	Location *oadpv1alpha1.NonAdminBackupStorageLocation
	// Name is the NACUUID: the name of all that is made for it, whether it exists or not.
	Name string
	// OADPNamespace is their namespace.
	OADPNamespace string
	// Rules are the administrator's policy.
	Rules policy.Policy
	// Velero is the Velero BackupStorageLocation.
	Velero *velerov1.BackupStorageLocation
	// Copy is the copy of the tenant's Secret: its metadata.
	Copy *metav1.PartialObjectMetadata
	// copied is the same with its content; nil if that is not read.
	copied *corev1.Secret
	// Request is the approval request.
	Request *oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest
	// Foreign is the kind of an object of the name Name that belongs to something else; empty if there is none.
	Foreign string
	// Secret is the tenant's Secret that the spec in force names: its metadata.
	Secret *metav1.PartialObjectMetadata
	// secrets are the tenant's Secrets, by name, whose content was read; nil for one that does not exist.
	secrets map[string]*corev1.Secret
	// drifted: the copy does not hold the Secret's content, although it says so: somebody changed it by hand. The watcher does
	// not know it.
	drifted bool
	// problem says why the Secret that the spec in force names cannot be copied. The watcher knows of a missing Secret, and of
	// the worker's verdicts.
	problem string
	// seeing: the content of Secrets was read.
	seeing bool
	// NamespaceTerminating is read only if Location is being deleted, or is gone.
	NamespaceTerminating bool
	// Backups are the NonAdminBackups in it that are not being deleted; read only if Location is being deleted, or is gone.
	Backups []oadpv1alpha1.NonAdminBackup
	// Verdict on the present spec; not read if Location is being deleted.
	Verdict Verdict
}

// Gather reads the objects. An error means that one could not be read, never that something is absent or invalid.
func (g *Gatherer) Gather(ctx context.Context, ref contract.ObjectRef) (*Objects, error) {
	found := &oadpv1alpha1.NonAdminBackupStorageLocation{}
	err := g.Reader.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, found)
	if apierrors.IsNotFound(err) || (err == nil && string(found.UID) != ref.UID) {
		if err == nil && owner.Claims(found, owner.NACUUID(g.ClusterID, ref.Namespace, ref.Name, ref.UID)) {
			return &Objects{Ref: ref}, nil // what was made for it belongs to its successor
		}
		found, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get NonAdminBackupStorageLocation %s: %w", ref, err)
	}
	o := &Objects{
		Ref: ref, Location: found, OADPNamespace: g.OADPNamespace, seeing: g.ReadSecrets, secrets: map[string]*corev1.Secret{},
	}
	if err := g.findMade(ctx, o); err != nil {
		return nil, err
	}
	if found == nil || !found.DeletionTimestamp.IsZero() {
		return o, g.gatherDeletion(ctx, o)
	}
	if o.Rules, err = g.Policy.Get(ctx); err != nil {
		return nil, fmt.Errorf("read the admin's policy: %w", err)
	}
	if o.Verdict, err = g.judge(ctx, o); err != nil {
		return nil, err
	}
	spec, _ := o.InForce()
	if spec == nil || spec.Credential == nil {
		return o, nil
	}
	if o.Secret, err = g.secretMeta(ctx, o, spec.Credential.Name); err != nil {
		return nil, err
	}
	return o, g.compareSecret(ctx, o, spec)
}

// compareSecret decides whether the Secret that the spec in force names can be copied, and whether the copy is up to date.
func (g *Gatherer) compareSecret(ctx context.Context, o *Objects, spec *velerov1.BackupStorageLocationSpec) error {
	credentials, err := g.Credentials(ctx, o, spec)
	var invalid *check.InvalidSpecError
	switch recorded, found := o.recordedVerdict(); {
	case errors.As(err, &invalid):
		o.problem = shorten.Text(invalid.Error(), maxMessageBytes)
		return nil
	case err != nil:
		return err
	case !o.seeing && found && CredentialOf(spec) == CredentialOf(o.Location.Spec.BackupStorageLocationSpec):
		o.problem = recorded.Message
	}
	if o.seeing && o.copySynced(spec) {
		o.drifted = !maps.EqualFunc(o.copied.Data, credentials.Data(spec), bytes.Equal)
	}
	return nil
}

// findMade reads what was made for the location. A name in its status may be forged: it counts only if the Velero
// BackupStorageLocation of that name names this location as its origin.
func (g *Gatherer) findMade(ctx context.Context, o *Objects) error {
	o.Name = owner.NACUUID(g.ClusterID, o.Ref.Namespace, o.Ref.Name, o.Ref.UID)
	if recorded := owner.Claimed(o.Location); recorded != "" && recorded != o.Name {
		found := &velerov1.BackupStorageLocation{}
		if exists, err := k8s.Get(ctx, g.Reader, "BackupStorageLocation", g.OADPNamespace, recorded, found); err != nil {
			return err
		} else if exists && o.owns(found) {
			o.Name = recorded
		}
	}
	o.Velero = &velerov1.BackupStorageLocation{}
	o.Request = &oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest{}
	secret := g.copyToRead(o)
	for _, made := range []struct {
		kind   string
		object client.Object
		absent func()
	}{
		{"BackupStorageLocation", o.Velero, func() { o.Velero = nil }},
		{"Secret", secret, func() { o.Copy, o.copied = nil, nil }},
		{oadpv1alpha1.KindApprovalRequest, o.Request, func() { o.Request = nil }},
	} {
		exists, err := k8s.Get(ctx, g.Reader, made.kind, g.OADPNamespace, o.Name, made.object)
		if err != nil {
			return err
		}
		if exists && o.owns(made.object) {
			continue
		}
		made.absent()
		if exists {
			o.Foreign = made.kind
		}
	}
	if o.copied != nil {
		o.Copy = metadataOf("Secret")
		o.Copy.ObjectMeta = o.copied.ObjectMeta
	}
	return nil
}

// copyToRead returns what the copy is read into: with its content, or without.
func (g *Gatherer) copyToRead(o *Objects) client.Object {
	if g.ReadSecrets {
		o.copied = &corev1.Secret{}
		return o.copied
	}
	o.Copy = metadataOf("Secret")
	return o.Copy
}

// owns reports whether an object of the OADP namespace was made for the location.
func (o *Objects) owns(object client.Object) bool {
	return owner.Location.Called(object, o.Ref.Namespace, o.Ref.Name)
}

func (g *Gatherer) gatherDeletion(ctx context.Context, o *Objects) error {
	terminating, err := k8s.NamespaceTerminating(ctx, g.Reader, o.Ref.Namespace)
	if o.NamespaceTerminating = terminating; terminating || err != nil {
		return err // its NonAdminBackups are deleted with it
	}
	list := &oadpv1alpha1.NonAdminBackupList{}
	if err := g.Reader.List(ctx, list, client.InNamespace(o.Ref.Namespace)); err != nil {
		return fmt.Errorf("list NonAdminBackups in namespace %s: %w", o.Ref.Namespace, err)
	}
	for i := range list.Items {
		if nab := &list.Items[i]; nab.DeletionTimestamp.IsZero() && o.holds(nab) {
			o.Backups = append(o.Backups, *nab)
		}
	}
	return nil
}

// holds reports whether a NonAdminBackup's Velero Backup is in the location.
func (o *Objects) holds(nab *oadpv1alpha1.NonAdminBackup) bool {
	made := nab.Status.VeleroBackup
	switch {
	case made == nil:
		return false
	case made.Spec != nil:
		return made.Spec.StorageLocation == o.Name
	}
	// If the location is gone, another one may have its name.
	return o.Location != nil && nab.Spec.BackupSpec != nil && nab.Spec.BackupSpec.StorageLocation == o.Location.Name
}

// secret reads a Secret of the tenant, once: who copies its content records the version of that very content. It is nil if there
// is none.
func (g *Gatherer) secret(ctx context.Context, o *Objects, name string) (*corev1.Secret, error) {
	secret, read := o.secrets[name]
	if read {
		return secret, nil
	}
	secret = &corev1.Secret{}
	exists, err := k8s.Get(ctx, g.Reader, "Secret", o.Ref.Namespace, name, secret)
	if err != nil {
		return nil, err
	}
	if !exists {
		secret = nil
	}
	o.secrets[name] = secret
	return secret, nil
}

// secretMeta is the metadata of a Secret of the tenant; nil if there is none.
func (g *Gatherer) secretMeta(ctx context.Context, o *Objects, name string) (*metav1.PartialObjectMetadata, error) {
	object := metadataOf("Secret")
	if g.ReadSecrets {
		secret, err := g.secret(ctx, o, name)
		if secret == nil {
			return nil, err
		}
		object.ObjectMeta = secret.ObjectMeta
		return object, nil
	}
	if exists, err := k8s.Get(ctx, g.Reader, "Secret", o.Ref.Namespace, name, object); err != nil || !exists {
		return nil, err
	}
	return object, nil
}

func metadataOf(kind string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Version: corev1.SchemeGroupVersion.Version, Kind: kind})
	return object
}
