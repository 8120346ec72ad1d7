package location

import (
	"context"
	"errors"
	"fmt"
	"maps"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"holdfast.dev/holdfast/activities"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/workflows/contract"
)

const maxSyncErrorBytes = 1000

// Sync makes the copy of the tenant's Secret and the Velero BackupStorageLocation as the spec in force says, in this order, and
// records the result in the status. It makes one of them at a time: see contract.LocationView's CopyMade.
func (l *Activities) Sync(ctx context.Context, step contract.ObjectStep) (contract.LocationView, error) {
	copyMade := false
	view, err := l.locations().Update(ctx, step.Ref, func(o *Objects) error {
		spec, _ := o.InForce()
		if spec == nil || o.Foreign != "" || !controllerutil.ContainsFinalizer(o.Location, oadpv1alpha1.NabslFinalizer) {
			return nil // changed meanwhile: the workflow decides again on the view
		}
		missing, before := o.Copy == nil, o.copiedVersion()
		secret, err := l.syncSecret(ctx, o, spec)
		if err != nil || secret == nil {
			return err
		}
		_, counts := o.NewVelero(spec).Annotations[oadpv1alpha1.CopiedVersionAnnotation]
		anew := counts && o.copiedVersion() != before // Velero has to see it before it validates the location with it
		if copyMade = copyMade || missing || anew; copyMade {
			return l.show(ctx, o, secret)
		}
		made, err := l.syncVelero(ctx, o, spec)
		if err != nil {
			return err
		}
		return l.show(ctx, o, func(to *oadpv1alpha1.NonAdminBackupStorageLocation) {
			secret(to)
			made(to)
		})
	})
	view.CopyMade = copyMade && view.Found && !view.Kept
	return view, err
}

// outcome writes the result of a write to a status.
type outcome func(*oadpv1alpha1.NonAdminBackupStorageLocation)

// syncSecret copies the one key that the spec names. The content goes from the API server to the API server: it is in no error,
// and in nothing that is returned. A Secret that must not be used leaves the copy as it is; the outcome is nil if there is none
// yet.
func (l *Activities) syncSecret(
	ctx context.Context, o *Objects, spec *velerov1.BackupStorageLocationSpec,
) (outcome, error) {
	credentials, err := l.Gatherer.Credentials(ctx, o, spec)
	var invalid *check.InvalidSpecError
	if errors.As(err, &invalid) {
		return l.keepCopy(ctx, o, invalid.Error())
	}
	if err != nil {
		return nil, err
	}
	meta := o.CopyMeta(CredentialOf(spec), credentials.Version)
	if o.Copy == nil {
		made := &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeOpaque, Data: credentials.Data(spec)}
		if err := l.Client.Create(ctx, made); err != nil {
			return nil, fmt.Errorf("create Secret %s: %w", client.ObjectKeyFromObject(made), withoutContent(activities.AsConflict(err)))
		}
		o.Copy = &metav1.PartialObjectMetadata{ObjectMeta: made.ObjectMeta}
		return secretOutcome(oadpv1alpha1.ReasonSecretCreated, oadpv1alpha1.MessageSecretCreated), nil
	}
	made := o.copied
	changed, err := l.PatchObject(ctx, made, func() {
		maps.Copy(made.Labels, meta.Labels)
		maps.Copy(made.Annotations, meta.Annotations)
		made.Data = credentials.Data(spec)
	})
	if apierrors.IsInvalid(err) { // it was made immutable: it is created again
		err = activities.AsConflict(apierrors.NewAlreadyExists(corev1.Resource("secrets"), made.Name))
		return nil, errors.Join(err, l.Cluster.Delete(ctx, made))
	}
	if err != nil {
		return nil, withoutContent(err)
	}
	o.Copy = &metav1.PartialObjectMetadata{ObjectMeta: made.ObjectMeta}
	if !changed {
		return unchanged, nil
	}
	return secretOutcome(oadpv1alpha1.ReasonSecretUpdated, oadpv1alpha1.MessageSecretUpdated), nil
}

func secretOutcome(reason, message string) outcome {
	return func(to *oadpv1alpha1.NonAdminBackupStorageLocation) { ApplySecret(to, reason, message) }
}

// keepCopy records which version of the tenant's Secret was read and not copied.
func (l *Activities) keepCopy(ctx context.Context, o *Objects, problem string) (outcome, error) {
	if o.Copy == nil {
		return nil, nil // the verdict on the spec says why
	}
	if o.Secret != nil {
		made := o.copied
		_, err := l.PatchObject(ctx, made, func() {
			made.Annotations[oadpv1alpha1.CopiedVersionAnnotation] = VersionOf(o.Secret)
		})
		if err != nil {
			return nil, withoutContent(err)
		}
		o.Copy = &metav1.PartialObjectMetadata{ObjectMeta: made.ObjectMeta}
	}
	return secretOutcome(oadpv1alpha1.ReasonSecretSyncFailed, KeptCopy(problem)), nil
}

// syncVelero creates or corrects the Velero BackupStorageLocation. If the API server will never accept it, that becomes a
// condition.
func (l *Activities) syncVelero(
	ctx context.Context, o *Objects, spec *velerov1.BackupStorageLocationSpec,
) (outcome, error) {
	wanted := o.NewVelero(spec)
	reason, message := oadpv1alpha1.ReasonBackupStorageLocationCreated, oadpv1alpha1.MessageBSLCreated
	var err error
	changed := true
	if o.Velero == nil {
		if err = activities.AsConflict(l.Client.Create(ctx, wanted)); err == nil {
			o.Velero = wanted
		}
	} else {
		reason, message = oadpv1alpha1.ReasonBackupStorageLocationUpdated, oadpv1alpha1.MessageBSLUpdated
		made := o.Velero.DeepCopy()
		changed, err = l.PatchObject(ctx, made, func() {
			maps.Copy(made.Labels, wanted.Labels)
			made.Spec = wanted.Spec
			if unvalidated(made, wanted) {
				maps.Copy(made.Annotations, wanted.Annotations)
				made.Status.LastValidationTime = nil
			}
		})
		if err == nil {
			o.Velero = made
		}
	}
	switch {
	case err == nil && !changed:
		return unchanged, nil
	case err == nil:
	case activities.Refused(err):
		reason = oadpv1alpha1.ReasonBackupStorageLocationSyncError
		message = shorten.Text(fmt.Sprintf("%s: %v", oadpv1alpha1.MessageBSLSyncError, err), maxSyncErrorBytes)
	default:
		return nil, fmt.Errorf("write Velero BackupStorageLocation %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	return func(to *oadpv1alpha1.NonAdminBackupStorageLocation) { ApplySynced(to, reason, message) }, nil
}

// withoutContent removes the API server's message about a Secret from an error: it may quote the content.
func withoutContent(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) {
		bare := status.Status()
		bare.Message, bare.Details = "the API server does not accept the Secret", nil
		return &apierrors.StatusError{ErrStatus: bare}
	}
	return err
}
