package drill

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fdbgather "holdfast.dev/holdfast/activities/fdb/gather"
	"holdfast.dev/holdfast/activities/verdict"
	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/workflows/contract"
)

// Objects is what was read about one FoundationDBDrill. The objects are the reader's own: copy before changing.
type Objects struct {
	// Drill is nil when no object of the requested UID exists; nothing else is read then.
	Drill *fdbv1alpha1.FoundationDBDrill
	// Backup is nil when there is none of that name.
	Backup *fdbv1alpha1.FoundationDBBackup
	// Target and Source are nil when there is no FoundationDBCluster of that name. Labelled: the target's owner lets drills use it.
	Target, Source *fdbgather.Cluster
	Labelled       bool
	// Unready says why the target cannot be reached; empty if it can.
	Unready string
	// Restore is what has the name of the drill's FoundationDBRestore, which somebody else may have made; nil if there is none.
	Restore *fdbv1alpha1.FoundationDBRestore
	// NamespaceEnding: the namespace is being deleted.
	NamespaceEnding bool
	// At is when they were read.
	At time.Time
}

// Gather reads the objects live. An error means that one could not be read, never that something is absent.
func Gather(ctx context.Context, reader client.Reader, ref contract.ObjectRef) (*Objects, error) {
	drill := &fdbv1alpha1.FoundationDBDrill{}
	exists, err := k8s.Get(ctx, reader, fdbv1alpha1.KindFoundationDBDrill, ref.Namespace, ref.Name, drill)
	if err != nil {
		return nil, err
	}
	if !exists || string(drill.UID) != ref.UID {
		return &Objects{}, nil
	}
	o := &Objects{Drill: drill.DeepCopy(), At: time.Now()}
	for _, read := range []func(context.Context, client.Reader) error{o.readTarget, o.readBackup, o.readRestore} {
		if err := read(ctx, reader); err != nil {
			return nil, err
		}
	}
	if !drill.DeletionTimestamp.IsZero() {
		o.NamespaceEnding, err = k8s.NamespaceTerminating(ctx, reader, ref.Namespace)
	}
	return o, err
}

func (o *Objects) readTarget(ctx context.Context, reader client.Reader) error {
	namespace, name := o.Drill.Namespace, o.Drill.Spec.TargetClusterName
	target, problem, err := fdbgather.ReadCluster(ctx, reader, namespace, name,
		"create a FoundationDBDrill with the right spec.targetClusterName")
	if problem != nil {
		o.Unready = problem.Message
	}
	if o.Target = target; err != nil || target == nil {
		return err
	}
	object := &foundationdbv1beta2.FoundationDBCluster{}
	exists, err := fdbgather.Find(ctx, reader, "FoundationDBCluster", namespace, name, object)
	o.Labelled = exists && object.Labels[fdbv1alpha1.LabelDrillTarget] == fdbv1alpha1.LabelDrillTargetValue
	return err
}

func (o *Objects) readBackup(ctx context.Context, reader client.Reader) error {
	backup := &fdbv1alpha1.FoundationDBBackup{}
	namespace, name := o.Drill.Namespace, o.Drill.Spec.BackupName
	exists, err := fdbgather.Find(ctx, reader, fdbv1alpha1.KindFoundationDBBackup, namespace, name, backup)
	if err != nil || !exists {
		return err
	}
	o.Backup = backup
	o.Source, _, err = fdbgather.ReadCluster(ctx, reader, namespace, fdbgather.ClusterName(backup), "")
	return err
}

func (o *Objects) readRestore(ctx context.Context, reader client.Reader) error {
	restore := &fdbv1alpha1.FoundationDBRestore{}
	exists, err := k8s.Get(ctx, reader, fdbv1alpha1.KindFoundationDBRestore, o.Drill.Namespace, RestoreName(o.Drill), restore)
	if exists {
		o.Restore = restore
	}
	return err
}

const (
	maxRestoreName = 40
	uidDigits      = 8
)

// RestoreName is the name of a drill's FoundationDBRestore. A part of the UID makes it differ from those of earlier drills.
func RestoreName(drill *fdbv1alpha1.FoundationDBDrill) string {
	uid := strings.ReplaceAll(string(drill.UID), "-", "")
	name := drill.Name[:min(len(drill.Name), maxRestoreName)]
	return strings.TrimRight(name, ".-") + "-drill-" + uid[:min(len(uid), uidDigits)]
}

// Ours reports whether the restore was made for the drill. Who may create restores can say that of one of theirs. It is ours only
// if it is the same: of everything, so that FoundationDB begins it in an empty database alone. Its spec cannot be changed.
func (o *Objects) Ours() bool {
	if o.Restore == nil || !metav1.IsControlledBy(o.Restore, o.Drill) {
		return false
	}
	spec, status := &o.Restore.Spec, &o.Drill.Status
	return status.Version != 0 && spec.Version == status.Version && spec.BackupURL == status.URL &&
		spec.DestinationClusterName == o.Drill.Spec.TargetClusterName &&
		len(spec.KeyRanges) == 0 && spec.Timestamp == nil && spec.Tag == ""
}

// entry is the backup that is restored: that of the status, or else the newest that can be.
func (o *Objects) entry() *fdbv1alpha1.BackupDetails {
	if o.Backup == nil {
		return nil
	}
	for i := len(o.Backup.Status.Backups) - 1; i >= 0; i-- {
		entry := &o.Backup.Status.Backups[i]
		if entry.LatestRestorable != nil && (o.Drill.Status.URL == "" || o.Drill.Status.URL == entry.URL) {
			return entry
		}
	}
	return nil
}

// NewRestore is the FoundationDBRestore of the drill: of everything in the backup, to an explicit version.
func (o *Objects) NewRestore() *fdbv1alpha1.FoundationDBRestore {
	drill := o.Drill
	restore := &fdbv1alpha1.FoundationDBRestore{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: drill.Namespace, Name: RestoreName(drill),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(
				drill, fdbv1alpha1.GroupVersion.WithKind(fdbv1alpha1.KindFoundationDBDrill))},
		},
		Spec: fdbv1alpha1.FoundationDBRestoreSpec{
			BackupURL: drill.Status.URL, Version: drill.Status.Version, DestinationClusterName: drill.Spec.TargetClusterName,
			RestoreState: fdbv1alpha1.RestoreStateRunning,
		},
	}
	restore.OwnerReferences[0].BlockOwnerDeletion = ptr.To(false) // we may not set the drill's finalizers
	if o.Backup != nil {
		reference := o.Backup.Spec.Credentials
		restore.Spec.Credentials = &reference
		restore.Spec.SourceClusterName = fdbgather.ClusterName(o.Backup)
	}
	return restore
}

// ranges are those to record: of the spec, or what the backup holds; none if that is not known.
func (o *Objects) ranges() (ranges []contract.FDBRangeRecord) {
	for _, one := range o.Drill.Spec.Ranges {
		ranges = append(ranges, contract.FDBRangeRecord{Name: one.Name, Start: one.Start, End: one.End})
	}
	entry := o.entry()
	if len(ranges) > 0 || entry == nil || slices.Contains(entry.KeyRanges, unknownRanges) {
		return ranges
	}
	for i, keys := range entry.KeyRanges {
		start, end, valid := strings.Cut(keys, " ")
		if valid && start != `""` {
			ranges = append(ranges, contract.FDBRangeRecord{Name: fmt.Sprintf("range-%d", i+1), Start: start, End: end})
		}
	}
	if len(ranges) == 0 {
		return []contract.FDBRangeRecord{everything()}
	}
	return ranges
}

// unknownRanges is in place of the key ranges of a backup that Holdfast has not started.
const unknownRanges = "unknown"

// outside is a range of the spec that the backup does not hold, as far as its ranges are known; empty if there is none.
func (o *Objects) outside() string {
	entry := o.entry()
	if entry == nil || len(entry.KeyRanges) == 0 || slices.Contains(entry.KeyRanges, unknownRanges) {
		return ""
	}
	for _, one := range o.Drill.Spec.Ranges {
		within := func(keys string) bool {
			start, end, _ := strings.Cut(keys, " ")
			return restoretool.Within(one.Start, one.End, start, end)
		}
		if !slices.ContainsFunc(entry.KeyRanges, within) {
			return one.Name
		}
	}
	return ""
}

// everything is all that a database holds, besides FoundationDB's own keys.
func everything() contract.FDBRangeRecord { return contract.FDBRangeRecord{Name: "all", End: `\xff`} }

func timeout(drill *fdbv1alpha1.FoundationDBDrill) time.Duration {
	limit, err := time.ParseDuration(cmp.Or(drill.Spec.Timeout, "1h"))
	if err != nil {
		return time.Hour // the API server accepts no such text
	}
	return limit
}

// View returns what decides the next step.
func (o *Objects) View() contract.FDBDrillView {
	if o.Drill == nil {
		return contract.FDBDrillView{}
	}
	drill, status := o.Drill, &o.Drill.Status
	view := contract.FDBDrillView{
		Found: true, Phase: string(cmp.Or(status.Phase, fdbv1alpha1.FDBDrillNew)), BeingDeleted: !drill.DeletionTimestamp.IsZero(),
		Held:       controllerutil.ContainsFinalizer(drill, fdbv1alpha1.FinalizerDrillTarget),
		Generation: drill.Generation, Admitted: status.Started != nil, Version: status.Version, Reached: o.reached(),
		Target: status.Target, Owner: o.owner(), Unready: o.Unready, Tag: status.Tag, Lost: o.lost(),
		Cleared: status.Cleared != nil, Concluded: status.Concluded != nil, Ended: status.Ended != nil,
		Restore: o.restoreView(),
	}
	if status.Started != nil {
		deadline := status.Started.Add(timeout(drill))
		view.Deadline, view.Late = deadline.Unix(), !o.At.Before(deadline)
	}
	if verified := verdict.Of(status.Conditions); verified != nil {
		view.Why = verified.Message
	}
	return view
}

func (o *Objects) restoreView() contract.FDBDrillRestoreView {
	view := contract.FDBDrillRestoreView{Begun: o.Drill.Status.Begun != nil, Name: RestoreName(o.Drill)}
	if !o.Ours() {
		return view
	}
	state := o.Restore.Status.State
	view.Exists, view.State = true, restoretool.Word(cmp.Or(state, fdbv1alpha1.RestorePending))
	view.Over, view.Completed = state.Final(), state == fdbv1alpha1.RestoreCompleted
	view.Goes = !o.Restore.DeletionTimestamp.IsZero()
	if unmet := fdbv1alpha1.Unmet(o.Restore.Status.Conditions); len(unmet) > 0 {
		view.Awaits = unmet[0].Message
	}
	return view
}

// owner is the description:id of the target; empty if it is not known.
func (o *Objects) owner() string {
	if !o.Target.Reachable() {
		return ""
	}
	return o.Target.Owner()
}

// reached reports whether the backup holds the version, as far as its object shows.
func (o *Objects) reached() bool {
	entry, version := o.entry(), o.Drill.Status.Version
	if version == 0 || o.Drill.Spec.Version != 0 {
		return version != 0 // the restore finds out
	}
	return entry != nil && entry.LatestRestorable.Version >= version
}

// lost says why the target must not, or cannot, be cleared any more; empty if it may be.
func (o *Objects) lost() string {
	status, name := &o.Drill.Status, o.Drill.Spec.TargetClusterName
	switch owner := o.owner(); {
	case status.Begun == nil:
		return ""
	case o.Target == nil:
		return fmt.Sprintf("FoundationDBCluster %q is gone", name)
	case !o.Labelled:
		return fmt.Sprintf("FoundationDBCluster %q has no label %s: %q any more", name, fdbv1alpha1.LabelDrillTarget,
			fdbv1alpha1.LabelDrillTargetValue)
	case owner != "" && owner != status.Target:
		return fmt.Sprintf("FoundationDBCluster %q is another database now, %s and not %s", name, owner, status.Target)
	case o.Source.Owner() == status.Target:
		return fmt.Sprintf("FoundationDBCluster %q is what FoundationDBBackup %q backs up now", name, o.Drill.Spec.BackupName)
	case o.NamespaceEnding:
		return "its namespace is being deleted"
	}
	return ""
}
