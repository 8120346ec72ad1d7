package synchronization

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/buckets"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/ledger"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/contract"
)

// Limits of one activity: it must end well before its timeout.
const (
	// maxActs is how many Velero Backups one activity acts on.
	maxActs = 500
	// maxIdle is how many it reads without anything to do, and maxIdleOfOne how many of those of one namespace: a tenant who
	// fills its bucket delays nobody else.
	maxIdle      = 1000
	maxIdleOfOne = 50
)

// Activities offers Velero Backups to their tenants.
type Activities struct {
	activities.Cluster
	Policy        policy.Getter
	OADPNamespace string
	// Buckets reads tenants' buckets.
	Buckets *buckets.Buckets
}

// Register registers the activity with a worker under its wire name.
func (s *Activities) Register(registry worker.ActivityRegistry) {
	activities.RegisterGuarded(registry, s.Paused, contract.SynchronizeBackups, s.Synchronize)
}

// synchronizing is one run of the activity.
type synchronizing struct {
	*Activities
	ledger    *ledger.Ledger
	make      bool
	locations map[string]*Location
	result    contract.SynchronizationResult
	// untrusted counts backups in tenants' buckets; withheld are those that Velero does not get to see.
	untrusted int
	withheld  []string
	// acted counts actual changes: a NonAdminBackup made, an entry written, a mark set.
	acted int
}

// Synchronize creates the NonAdminBackups of Velero Backups that have none, and keeps the ledger of those released. It lists
// candidates, and judges each by live reads before it changes anything. With a period of zero in the policy it creates nothing.
func (s *Activities) Synchronize(
	ctx context.Context, _ contract.ScheduledInput,
) (contract.SynchronizationResult, error) {
	rules, err := s.Policy.Get(ctx)
	if err != nil {
		return contract.SynchronizationResult{}, fmt.Errorf("read the admin's policy: %w", err)
	}
	run := &synchronizing{
		Activities: s, make: rules.BackupSync() > 0,
		ledger: &ledger.Ledger{Client: s.Client, OADPNamespace: s.OADPNamespace},
	}
	if run.locations, err = LocationsOf(ctx, s.Client, s.OADPNamespace, rules); err != nil {
		return contract.SynchronizationResult{}, err
	}
	if err := run.readBuckets(ctx, rules); err != nil {
		return contract.SynchronizationResult{}, err
	}
	run.result.Waiting = Waiting(run.locations)
	if err := run.pass(ctx); err != nil {
		return contract.SynchronizationResult{}, err
	}
	return run.result, nil
}

// readBuckets brings the Backups of tenants' buckets into the cluster.
func (r *synchronizing) readBuckets(ctx context.Context, rules policy.Policy) error {
	if rules.TenantsBuckets.VeleroSynchronizes {
		return nil
	}
	read, err := r.Buckets.Synchronize(ctx, bucketsOf(r.locations), rules.TenantsBuckets.MaxArchive())
	r.result.Brought, r.result.Removed, r.result.Withheld = read.Brought, read.Removed, len(read.Withheld)
	r.withheld = read.Withheld
	r.result.Unread = read.Failed
	r.untrusted = read.Untrusted
	return err
}

func (r *synchronizing) pass(ctx context.Context) error {
	lists, err := r.list(ctx)
	if err != nil {
		return err
	}
	candidates, untrusted := lists.Candidates(rand.Shuffle)
	r.result.Untrusted = untrusted + r.untrusted
	through, err := r.serveAll(ctx, candidates, lists.Entries)
	if err != nil {
		return err
	}
	// If nothing was done, starting again at once would not help: the next run does the rest.
	if r.result.More = !through && r.acted > 0; r.result.More {
		return nil
	}
	for i := range lists.Backups {
		if made := &lists.Backups[i]; lists.MadeFor(made) { // a process died in between
			activity.RecordHeartbeat(ctx)
			if _, err := r.setState(ctx, made, StateMade); err != nil {
				return err
			}
		}
	}
	return r.forget(ctx, lists)
}

// list lists everything. The order matters: a NonAdminBackup exists before its Velero Backup, and an entry before the
// NonAdminBackup is deleted.
func (r *synchronizing) list(ctx context.Context) (*Lists, error) {
	lists := &Lists{NABs: map[types.NamespacedName]string{}, Locations: r.locations}
	var err error
	lists.Backups, err = activities.ListMetadata(ctx, r.Client, velerov1.SchemeGroupVersion.WithKind("BackupList"),
		client.InNamespace(r.OADPNamespace), client.HasLabels{owner.Backup.Label()})
	if err != nil {
		return nil, err
	}
	listed, err := activities.ListMetadata(ctx, r.Client, oadpv1alpha1.GroupVersion.WithKind("NonAdminBackupList"))
	if err != nil {
		return nil, err
	}
	for i := range listed {
		lists.NABs[client.ObjectKeyFromObject(&listed[i])] = owner.SyncedFrom(&listed[i])
	}
	lists.Entries, err = r.ledger.Read(ctx)
	return lists, err
}

// serveAll serves the candidates within the limits. It is false if some are left.
func (r *synchronizing) serveAll(
	ctx context.Context, candidates []Candidate, entries map[string]ledger.Entry,
) (bool, error) {
	through, idle, idleOf := true, 0, map[string]int{}
	for _, each := range candidates {
		if r.acted >= maxActs || idle >= maxIdle {
			return false, nil
		}
		if idleOf[each.Namespace] >= maxIdleOfOne {
			through = false
			continue
		}
		activity.RecordHeartbeat(ctx)
		_, entered := entries[each.Name]
		before := r.acted
		if err := r.serve(ctx, each.Name, entered); err != nil {
			return false, err
		}
		if r.acted == before {
			idle++
			idleOf[each.Namespace]++
		}
	}
	return through, nil
}

// serve takes the step that is due for one Velero Backup. If one seems due, it reads the NonAdminBackup, then the ledger, then
// the Velero Backup again: a NonAdminBackup is only released after its entry is written, or its Velero Backup deleted.
func (r *synchronizing) serve(ctx context.Context, name string, entered bool) error {
	made := &velerov1.Backup{}
	exists, err := k8s.Get(ctx, r.Client, "Velero Backup", r.OADPNamespace, name, made)
	if err != nil || !exists {
		return err
	}
	switch Decide(made, r.locations[made.Spec.StorageLocation], entered) {
	case Leave, Keep:
		return nil
	case Distrust:
		r.result.Untrusted++
		return nil
	case Make:
		if !r.make {
			return nil
		}
	case Note, Mark:
	}
	key, _ := owner.Backup.Proven(made)
	exists, err = k8s.Get(ctx, r.Client, oadpv1alpha1.KindNonAdminBackup, key.Namespace, key.Name, &oadpv1alpha1.NonAdminBackup{})
	if err != nil || exists {
		return err
	}
	entries, err := r.ledger.Read(ctx)
	if err != nil {
		return err
	}
	made = &velerov1.Backup{}
	if exists, err = k8s.Get(ctx, r.Client, "Velero Backup", r.OADPNamespace, name, made); err != nil || !exists {
		return err
	}
	if now, ok := owner.Backup.Proven(made); !ok || now != key {
		return nil // another one: left to the next run
	}
	_, entered = entries[name]
	return r.act(ctx, made, entered)
}

// act takes the step for a Velero Backup, which was read last.
func (r *synchronizing) act(ctx context.Context, made *velerov1.Backup, entered bool) error {
	location := r.locations[made.Spec.StorageLocation]
	switch Decide(made, location, entered) {
	case Make:
		return r.create(ctx, made, location)
	case Note:
		if err := r.ledger.Add(ctx, made.Name, NewEntry(made, ledger.Unnoticed, time.Now())); err != nil {
			return err
		}
		r.acted++
		r.result.Noted++
		_, err := r.setState(ctx, made, StateReleased)
		return err
	case Mark:
		marked, err := r.setState(ctx, made, StateReleased)
		if marked {
			r.acted++
		}
		return err
	case Leave, Keep, Distrust:
	}
	return nil
}

func (r *synchronizing) create(ctx context.Context, made *velerov1.Backup, location *Location) error {
	if !r.make {
		return nil
	}
	nab := NewBackup(made, location)
	gone, err := k8s.NamespaceTerminating(ctx, r.Client, nab.Namespace)
	if err != nil || gone {
		return err
	}
	if name := RecordedPlan(made); name != "" && PlanIsProven(made, location) {
		plan := &holdfastv1alpha1.BackupPlan{}
		if _, err := k8s.Get(ctx, r.Client, holdfastv1alpha1.KindBackupPlan, nab.Namespace, name, plan); err != nil {
			plan.UID = "" // the plan itself writes it when it adopts the backup
		}
		OfPlan(nab, made, name, string(plan.UID))
	}
	err = r.Client.Create(ctx, nab)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil // a tenant's own
	case apierrors.IsForbidden(err), activities.Refused(err):
		// A quota, an admission webhook: an error in one namespace must not delay the others.
		activity.GetLogger(ctx).Warn("cannot make a NonAdminBackup for a Velero Backup", "targetNamespace", nab.Namespace,
			"name", nab.Name, "backup", made.Name, "error", err)
		r.result.Refused++
		return nil
	case err != nil:
		return fmt.Errorf("create NonAdminBackup %s/%s for Velero Backup %s: %w", nab.Namespace, nab.Name, made.Name, err)
	}
	r.acted++
	r.result.Made++
	_, err = r.setState(ctx, made, StateMade)
	return err
}

// setState marks a Velero Backup. If it has changed or is gone meanwhile, it is left to the next run; the result is false then.
func (r *synchronizing) setState(ctx context.Context, made client.Object, state string) (bool, error) {
	before := made.DeepCopyObject().(client.Object)
	SetState(made, state)
	err := r.Client.Patch(ctx, made, k8s.BoundPatch(before))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("mark Velero Backup %s: %w", made.GetName(), err)
	}
	return true, nil
}

// forget removes ledger entries whose data are gone from the store.
func (r *synchronizing) forget(ctx context.Context, lists *Lists) error {
	there := map[string]bool{}
	for i := range lists.Backups {
		there[lists.Backups[i].Name] = true
	}
	for _, name := range r.withheld {
		there[name] = true
	}
	gone := map[string]bool{}
	for nacuuid, entry := range lists.Entries {
		if there[nacuuid] || !Forgettable(entry, r.locations) {
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
	var err error
	r.result.EntriesRemoved, err = r.ledger.Remove(ctx, gone)
	return err
}
