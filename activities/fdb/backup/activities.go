package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/worker"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fdb/agents"
	"holdfast.dev/holdfast/activities/fdb/gather"
	"holdfast.dev/holdfast/activities/fdb/tools"
	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows/contract"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
)

// Activities acts on FoundationDBBackups and their agents' Deployments.
type Activities struct {
	activities.Cluster
	// Gatherer reads through Client.
	Gatherer *gather.Gatherer
}

// Register registers the activities with a worker under their wire names.
func (b *Activities) Register(registry worker.ActivityRegistry) {
	object := activities.Object[sight, contract.FDBBackupView]{
		Cluster: b.Cluster, Kind: &fdbv1alpha1.FoundationDBBackup{}, Resource: fdbv1alpha1.ResourceFoundationDBBackups,
		Gather: b.gather,
		Gone:   func(s *sight) bool { return s.Object == nil },
		View:   (*sight).view,
		Found:  func(view contract.FDBBackupView) bool { return view.Found },
	}
	activities.RegisterStep(registry, object, contract.ObserveFDBBackup, b.Observe)
	activities.RegisterStep(registry, object, contract.ApplyFDBAgents, b.ApplyAgents)
	activities.RegisterStep(registry, object, contract.PlanFDBBackup, b.Plan)
	activities.RegisterStep(registry, object, contract.PublishFDBBackup, b.Publish)
	activities.RegisterStep(registry, object, contract.ReleaseFDBBackup, b.Release)
	activities.RegisterGuarded(registry, b.Paused, contract.FindFirstSnapshots, b.FindFirstSnapshots)
}

// sight is what an activity has read of a FoundationDBBackup.
type sight struct {
	*gather.Objects
	namespaceEnding bool
	// refused says why the API server rejects the agents' Deployment.
	refused string
}

func (s *sight) view() contract.FDBBackupView {
	view := s.Objects.View()
	view.NamespaceEnding = s.namespaceEnding
	if s.Object == nil {
		return view
	}
	version := ""
	if s.Cluster != nil {
		version = s.Cluster.Version
	}
	wanted, err := agents.Deployment(s.Object, version)
	view.Agents = agents.View(s.Object, s.Deployment, wanted)
	view.Agents.Refused = s.refused
	var template *agents.TemplateError
	if errors.As(err, &template) {
		view.Agents.Invalid = template.Error()
	} else if err == nil && view.Agents.Ours {
		if _, err := agents.Merge(s.Deployment, wanted); err != nil {
			view.Agents.Invalid = err.Error()
		}
	}
	return view
}

func (b *Activities) gather(ctx context.Context, ref contract.ObjectRef) (*sight, error) {
	objects, err := b.Gatherer.Gather(ctx, ref)
	if err == nil && objects.Object != nil && k8s.JustRestored(objects.Object, objects.Object.Status.UID) {
		objects, err = b.beginAnew(ctx, ref, objects.Object)
	}
	if err != nil {
		return nil, err
	}
	s := &sight{Objects: objects}
	if s.Object != nil && !s.Object.DeletionTimestamp.IsZero() {
		s.namespaceEnding, err = k8s.NamespaceTerminating(ctx, b.Client, ref.Namespace)
	}
	return s, err
}

// beginAnew drops the status that a restore has brought. Its backups are those of the object in the backup: their data are not
// this object's to expire, nor to delete.
func (b *Activities) beginAnew(
	ctx context.Context, ref contract.ObjectRef, object *fdbv1alpha1.FoundationDBBackup,
) (*gather.Objects, error) {
	_, err := b.PatchStatus(ctx, object, func() {
		object.Status = fdbv1alpha1.FoundationDBBackupStatus{UID: object.UID}
	})
	if err != nil && !errors.Is(err, activities.ErrGone) {
		return nil, err
	}
	return b.Gatherer.Gather(ctx, ref)
}

// ApplyAgents creates or corrects the agents' Deployment. A Deployment of that name that is not ours stays as it is.
func (b *Activities) ApplyAgents(ctx context.Context, s *sight, step contract.ObjectStep) error {
	view := s.view()
	if !fdbbackup.AgentsDue(view) {
		return nil
	}
	wanted, err := agents.Deployment(s.Object, s.Cluster.Version)
	if err != nil {
		return nil //nolint:nilerr // the view says so
	}
	if s.Deployment == nil {
		return b.createAgents(ctx, s, wanted)
	}
	merged, err := agents.Merge(s.Deployment, wanted)
	if err != nil {
		return nil //nolint:nilerr // the view says so
	}
	err = b.Client.Patch(ctx, merged, k8s.BoundPatch(s.Deployment))
	switch {
	case s.wasRefused(err):
		return nil
	case err != nil:
		return fmt.Errorf("patch Deployment %s: %w", step.Ref, err)
	}
	s.Deployment = merged
	return nil
}

func (b *Activities) createAgents(ctx context.Context, s *sight, wanted *appsv1.Deployment) error {
	err := activities.AsConflict(b.Client.Create(ctx, wanted))
	if s.wasRefused(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create Deployment %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	s.Deployment = wanted
	return nil
}

// wasRefused notes that the API server rejects the Deployment, for its template, a quota, an admission policy or a missing
// permission. A condition shows it to the user; the backup itself goes on.
func (s *sight) wasRefused(err error) bool {
	if err == nil || (!activities.Refused(err) && !apierrors.IsForbidden(err)) {
		return false
	}
	if apierrors.IsForbidden(err) {
		metrics.AccessDenied(contract.ApplyFDBAgents.Name)
	}
	s.refused = fdb.Bound(err.Error(), tools.MaxFDBMessage)
	return true
}

// Plan records where the next backup goes, so that a repeated start goes to the same place.
func (b *Activities) Plan(ctx context.Context, s *sight, plan contract.FDBPlan) error {
	desired := s.Desired()
	if s.Object.Generation != plan.Generation || desired.URL == "" || fdbbackup.Planned(s.view()) {
		return nil // not due any more
	}
	var invalid error
	_, err := b.PatchStatus(ctx, s.Object, func() {
		invalid = gather.ApplyPlan(s.Object, desired, time.Unix(plan.At, 0))
	})
	return errors.Join(invalid, err)
}

// Publish writes the findings into the status.
func (b *Activities) Publish(ctx context.Context, s *sight, findings contract.FDBFindings) error {
	before := s.Object.Status.DeepCopy()
	changed, err := b.PatchStatus(ctx, s.Object, func() { gather.ApplyFindings(s.Object, findings, time.Now()) })
	if changed {
		events := gather.StatusEvents(*before, s.Object.Status)
		deleting := !s.Object.DeletionTimestamp.IsZero()
		if event := gather.ExpiryEvent(before.Expiry, s.Object.Status.Expiry, deleting); event != nil {
			events = append(events, *event)
		}
		for _, event := range events {
			b.Record(s.Object, eventType(event.Warning), event.Reason, "Reconcile", "%s", event.Note)
		}
	}
	return err
}

// FindFirstSnapshots lists the backups that are in their first snapshot, or about to start one, and those that wait for a slot,
// as many as the throttle can hold. It judges by the objects alone.
func (b *Activities) FindFirstSnapshots(ctx context.Context, in contract.FDBThrottleInput) (contract.FDBHolders, error) {
	var found contract.FDBHolders
	err := activities.EachPage(ctx, b.Client, func(page *fdbv1alpha1.FoundationDBBackupList) {
		for i := range page.Items {
			object := &page.Items[i]
			id := contract.WorkflowID(in.Cluster, contract.KindFDBBackup, contract.ObjectRef{
				Namespace: object.Namespace, Name: object.Name, UID: string(object.UID),
			})
			if gather.InFirstSnapshot(object) {
				found.WorkflowIDs = append(found.WorkflowIDs, id)
			} else if since, waits := gather.AwaitsSlot(object); waits {
				found.Waiting = append(found.Waiting, contract.FDBHolder{WorkflowID: id, Namespace: object.Namespace, Since: since.Unix()})
			}
		}
	})
	if err != nil {
		return found, fmt.Errorf("list FoundationDBBackups: %w", err)
	}
	found.Waiting, found.Beyond = frontWaiting(found.Waiting, in.Carried.Namespaces(0))
	return found, nil
}

// frontWaiting returns the members that the throttle can hold, in the order of their requests.
func frontWaiting(waiting []contract.FDBHolder, carried []string) ([]contract.FDBHolder, *contract.Beyond) {
	slices.SortStableFunc(waiting, func(a, b contract.FDBHolder) int { return cmp.Compare(a.Since, b.Since) })
	if len(waiting) <= contract.MaxFound {
		return waiting, nil
	}
	namespace := func(holder contract.FDBHolder) string { return holder.Namespace }
	front, beyond := contract.Front(waiting, contract.MaxFound, namespace, carried, contract.NamespacesOf(waiting, namespace))
	return front, &beyond
}
