package activities

import (
	"context"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/backup"
	"holdfast.dev/holdfast/k8s/released"
	"holdfast.dev/holdfast/k8s/synchronize"
	"holdfast.dev/holdfast/workflows/contract"
)

// maxPerSynchronization is how many Velero Backups one activity acts on: it must end well before its time.
const maxPerSynchronization = 500

// listPage is how many objects of a long list are asked for at a time.
const listPage = 500

// Synchronization offers Velero Backups to their tenants again.
type Synchronization struct {
	// Client reads and writes at the API server itself.
	Client        client.Client
	Policy        backup.PolicySource
	OADPNamespace string
	// Paused returns an error while another controller serves these kinds; nothing is done then.
	Paused func() error
}

// Register makes the activity known to a worker under its wire name.
func (s *Synchronization) Register(registry worker.ActivityRegistry) {
	told := untold[contract.SynchronizationInput, contract.SynchronizationResult]
	register(registry, contract.ActivitySynchronizeBackups, guard(s.Paused, s.Synchronize, told))
}

// synchronizing is one run of the activity.
type synchronizing struct {
	*Synchronization
	ledger    *released.Ledger
	make      bool
	locations map[string]*synchronize.Location
	result    contract.SynchronizationResult
	acted     int
}

// Synchronize makes the NonAdminBackups of Velero Backups that have none and keeps the ledger of those released. Each object
// is judged by a live read, whatever the lists have said. With a period of zero in the policy nothing is made.
func (s *Synchronization) Synchronize(
	ctx context.Context, _ contract.SynchronizationInput,
) (contract.SynchronizationResult, error) {
	rules, err := s.Policy.Get(ctx)
	if err != nil {
		return contract.SynchronizationResult{}, fmt.Errorf("read the admin's policy: %w", err)
	}
	run := &synchronizing{
		Synchronization: s, make: rules.BackupSync() > 0,
		ledger: &released.Ledger{Client: s.Client, OADPNamespace: s.OADPNamespace},
	}
	if run.locations, err = synchronize.Locations(ctx, s.Client, s.OADPNamespace); err != nil {
		return contract.SynchronizationResult{}, err
	}
	run.result.Waiting = synchronize.Waiting(run.locations)
	if err := run.pass(ctx); err != nil {
		return contract.SynchronizationResult{}, err
	}
	return run.result, nil
}

func (r *synchronizing) pass(ctx context.Context) error {
	// The order matters: a NonAdminBackup is there before its Velero Backup is.
	backups, err := listMetadata(ctx, r.Client, velerov1.SchemeGroupVersion.WithKind("BackupList"),
		client.InNamespace(r.OADPNamespace), client.HasLabels{oadpv1alpha1.NabOriginNACUUIDLabel})
	if err != nil {
		return err
	}
	listed, err := listMetadata(ctx, r.Client, oadpv1alpha1.GroupVersion.WithKind("NonAdminBackupList"))
	if err != nil {
		return err
	}
	nabs := map[types.NamespacedName]bool{}
	synced := map[types.NamespacedName]string{}
	for i := range listed {
		key := client.ObjectKeyFromObject(&listed[i])
		nabs[key], synced[key] = true, listed[i].Labels[oadpv1alpha1.NabSyncLabel]
	}
	for _, candidate := range synchronize.Candidates(backups, nabs) {
		if r.acted >= maxPerSynchronization {
			r.result.More = true
			return nil
		}
		activity.RecordHeartbeat(ctx)
		if err := r.serve(ctx, candidate.Name); err != nil {
			return err
		}
	}
	if err := r.markMade(ctx, backups, synced); err != nil {
		return err
	}
	return r.forget(ctx, backups)
}

// serve does what is due for one Velero Backup. The NonAdminBackup is read first: whoever lets it go enters it in the ledger
// before, or has its Velero Backup deleted.
func (r *synchronizing) serve(ctx context.Context, name string) error {
	made := &velerov1.Backup{}
	key, err := r.without(ctx, name, made)
	if err != nil || key == nil {
		return err
	}
	entries, err := r.ledger.Read(ctx)
	if err != nil {
		return err
	}
	_, entered := entries[name]
	if exists, err := k8s.Get(ctx, r.Client, "Velero Backup", r.OADPNamespace, name, made); err != nil || !exists {
		return err
	}
	location := r.locations[made.Spec.StorageLocation]
	switch synchronize.Decide(made, location, entered) {
	case synchronize.Distrust:
		r.result.Untrusted++
	case synchronize.Make:
		return r.create(ctx, made, location)
	case synchronize.Note:
		r.acted++
		if err := r.ledger.Add(ctx, name, synchronize.NewEntry(made, released.Unnoticed, time.Now())); err != nil {
			return err
		}
		r.result.Noted++
		return r.setState(ctx, made, synchronize.StateReleased)
	case synchronize.Mark:
		r.acted++
		return r.setState(ctx, made, synchronize.StateReleased)
	case synchronize.Leave, synchronize.Keep:
	}
	return nil
}

// without returns the key of the NonAdminBackup that a Velero Backup names, if that does not exist.
func (r *synchronizing) without(ctx context.Context, name string, made *velerov1.Backup) (*types.NamespacedName, error) {
	exists, err := k8s.Get(ctx, r.Client, "Velero Backup", r.OADPNamespace, name, made)
	if err != nil || !exists {
		return nil, err
	}
	key, ok := synchronize.OriginOf(made)
	if !ok {
		return nil, nil
	}
	found := &oadpv1alpha1.NonAdminBackup{}
	exists, err = k8s.Get(ctx, r.Client, oadpv1alpha1.KindNonAdminBackup, key.Namespace, key.Name, found)
	if err != nil || exists {
		return nil, err
	}
	return &key, nil
}

func (r *synchronizing) create(ctx context.Context, made *velerov1.Backup, location *synchronize.Location) error {
	if !r.make {
		return nil
	}
	nab := synchronize.NewBackup(made, location)
	gone, err := k8s.NamespaceTerminating(ctx, r.Client, nab.Namespace)
	if err != nil || gone {
		return err
	}
	r.acted++
	err = r.Client.Create(ctx, nab)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil // somebody's own
	case apierrors.IsForbidden(err), refused(err):
		// A quota, an admission webhook: one namespace's refusal must not keep the others waiting.
		activity.GetLogger(ctx).Warn("cannot make a NonAdminBackup for a Velero Backup", "targetNamespace", nab.Namespace,
			"name", nab.Name, "backup", made.Name, "error", err)
		r.result.Refused++
		return nil
	case err != nil:
		return fmt.Errorf("create NonAdminBackup %s/%s for Velero Backup %s: %w", nab.Namespace, nab.Name, made.Name, err)
	}
	r.result.Made++
	return r.setState(ctx, made, synchronize.StateMade)
}

// markMade marks the Velero Backups that a NonAdminBackup was made for, where a process died in between.
func (r *synchronizing) markMade(
	ctx context.Context, backups []metav1.PartialObjectMetadata, synced map[types.NamespacedName]string,
) error {
	for i := range backups {
		made := &backups[i]
		key, ok := synchronize.OriginOf(made)
		if !ok || synced[key] != made.Name || synchronize.State(made) == synchronize.StateMade {
			continue
		}
		activity.RecordHeartbeat(ctx)
		if err := r.setState(ctx, made, synchronize.StateMade); err != nil {
			return err
		}
	}
	return nil
}

// setState marks a Velero Backup. One that has changed or gone meanwhile is left to the next time.
func (r *synchronizing) setState(ctx context.Context, made client.Object, state string) error {
	before := made.DeepCopyObject().(client.Object)
	synchronize.SetState(made, state)
	err := r.Client.Patch(ctx, made, k8s.BoundPatch(before))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("mark Velero Backup %s: %w", made.GetName(), err)
	}
	return nil
}

// forget takes out of the ledger what is gone from the store too.
func (r *synchronizing) forget(ctx context.Context, backups []metav1.PartialObjectMetadata) error {
	entries, err := r.ledger.Read(ctx)
	if err != nil || len(entries) == 0 {
		return err
	}
	there := map[string]bool{}
	for i := range backups {
		there[backups[i].Name] = true
	}
	gone := map[string]bool{}
	for nacuuid, entry := range entries {
		if there[nacuuid] || !synchronize.Forgettable(entry, r.locations) {
			continue
		}
		activity.RecordHeartbeat(ctx)
		exists, err := k8s.Get(ctx, r.Client, "Velero Backup", r.OADPNamespace, nacuuid, &velerov1.Backup{})
		if err != nil {
			return err
		}
		if !exists {
			gone[nacuuid] = true
		}
	}
	if len(gone) == 0 {
		return nil
	}
	r.result.Forgotten, err = r.ledger.Remove(ctx, gone)
	return err
}
