package restore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fdb/gather"
	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// Gatherer reads what concerns one FoundationDBRestore. Reader is the API server in the worker, the cache in the watcher.
type Gatherer struct {
	Reader client.Reader
}

// Objects is what was read about one FoundationDBRestore. The objects are the reader's own: copy before changing. The credentials
// in it are secret.
type Objects struct {
	// Object is nil when no object of the requested UID exists; nothing else is read then.
	Object *fdbv1alpha1.FoundationDBRestore
	// Cluster is the destination; nil when there is no FoundationDBCluster of that name.
	Cluster *gather.Cluster
	// Source is the cluster that was backed up; nil if none is named, or none of that name exists.
	Source *gather.Cluster
	// Backup is that of spec.backupName; nil if none is named, or none of that name exists.
	Backup *fdbv1alpha1.FoundationDBBackup
	// URL is the container's, without secrets: that of the plan, once there is one. Empty if it is not known.
	URL string
	// Credentials is the credentials file and Accounts are those in it; nil without a valid one.
	Credentials []byte
	Accounts    []fdb.Account
	// Problem is the first thing that keeps the restore from being started, as a condition; nil if nothing does.
	Problem *contract.FDBCondition
}

// otherRestore is the advice if a name is wrong: no field of a restore can be changed.
const otherRestore = "create a FoundationDBRestore with the right %s"

// Gather reads the objects. An error means that one could not be read, never that something is absent or invalid.
func (g *Gatherer) Gather(ctx context.Context, ref contract.ObjectRef) (*Objects, error) {
	object := &fdbv1alpha1.FoundationDBRestore{}
	exists, err := k8s.Get(ctx, g.Reader, fdbv1alpha1.KindFoundationDBRestore, ref.Namespace, ref.Name, object)
	if err != nil {
		return nil, err
	}
	if !exists || string(object.UID) != ref.UID {
		return &Objects{}, nil
	}
	return g.GatherFor(ctx, object)
}

// GatherFor reads what concerns a restore that need not be stored.
func (g *Gatherer) GatherFor(ctx context.Context, object *fdbv1alpha1.FoundationDBRestore) (*Objects, error) {
	objects := &Objects{Object: object}
	for _, read := range []func(context.Context, *Objects) error{
		g.readCluster, g.readSource, g.readBackup, g.readCredentials,
	} {
		if err := read(ctx, objects); err != nil {
			return nil, err
		}
	}
	objects.noted(gather.KeyRangesProblem(objects.KeyRanges()))
	return objects, nil
}

func (g *Gatherer) readCluster(ctx context.Context, o *Objects) error {
	cluster, problem, err := gather.ReadCluster(ctx, g.Reader, o.Object.Namespace, o.Object.Spec.DestinationClusterName,
		fmt.Sprintf(otherRestore, "spec.destinationClusterName"))
	o.Cluster = cluster
	o.noted(problem)
	return err
}

// readSource reads the cluster that was backed up. It is a problem that there is none only if a time has to be resolved to a
// version.
func (g *Gatherer) readSource(ctx context.Context, o *Objects) error {
	name := o.Object.Spec.SourceClusterName
	if name == "" {
		return nil
	}
	source, problem, err := gather.ReadCluster(ctx, g.Reader, o.Object.Namespace, name,
		fmt.Sprintf(otherRestore, "spec.sourceClusterName, or with spec.version, which needs none"))
	o.Source = source
	if problem != nil && o.byTime() {
		if problem.Reason == fdbv1alpha1.ReasonClusterMissing {
			problem.Reason = fdbv1alpha1.ReasonSourceMissing
		}
		o.noted(problem)
	}
	return err
}

// byTime reports whether the version still has to be found by its time.
func (o *Objects) byTime() bool {
	spec := o.Object.Spec
	return o.Object.Status.Plan == nil && spec.Version == 0 && spec.Timestamp != nil
}

func (g *Gatherer) readBackup(ctx context.Context, o *Objects) error {
	spec := o.Object.Spec
	if spec.BackupName != "" {
		backup := &fdbv1alpha1.FoundationDBBackup{}
		exists, err := gather.Find(ctx, g.Reader, fdbv1alpha1.KindFoundationDBBackup, o.Object.Namespace, spec.BackupName, backup)
		if err != nil {
			return err
		}
		if exists {
			o.Backup = backup
		}
	}
	plan := o.Object.Status.Plan
	switch {
	case plan != nil:
		o.URL = fdb.CleanURL(plan.URL)
	case spec.BackupURL != "":
		o.URL = fdb.CleanURL(spec.BackupURL)
	case o.Backup == nil:
		o.misconfigured(fdbv1alpha1.ReasonBackupMissing, "there is no FoundationDBBackup %q in namespace %s: create a "+
			"FoundationDBRestore with the right spec.backupName, or with spec.backupURL", spec.BackupName, o.Object.Namespace)
	default:
		o.URL = newest(o.Backup)
		if o.URL == "" {
			o.misconfigured(fdbv1alpha1.ReasonBackupMissing, "FoundationDBBackup %q has no backup yet that can be restored: wait for "+
				"its first snapshot", spec.BackupName)
		}
	}
	return nil
}

// newest returns the URL of the newest backup that can be restored, by the object's status.
func newest(backup *fdbv1alpha1.FoundationDBBackup) string {
	for _, entry := range slices.Backward(backup.Status.Backups) {
		if entry.LatestRestorable != nil {
			return fdb.CleanURL(entry.URL)
		}
	}
	return ""
}

// readCredentials reads the object's own credentials, or those of its backup, and checks the URL against them.
func (g *Gatherer) readCredentials(ctx context.Context, o *Objects) error {
	reference := o.Object.Spec.Credentials
	if reference == nil && o.Backup != nil {
		reference = &o.Backup.Spec.Credentials
	}
	if reference == nil {
		o.misconfigured(fdbv1alpha1.ReasonSecretMissing, "there are no credentials: FoundationDBBackup %q, which named them, "+
			"is gone. Create a FoundationDBRestore with spec.credentials", o.Object.Spec.BackupName)
		return nil
	}
	file, accounts, problem, err := gather.ReadCredentials(ctx, g.Reader, o.Object.Namespace, *reference)
	o.noted(problem)
	if err != nil || problem != nil {
		return err
	}
	o.Credentials, o.Accounts = file, accounts
	if o.URL == "" || strings.HasPrefix(o.URL, "file://") { // the worker decides whether it accepts files
		return nil
	}
	place, err := fdb.ParseURL(o.URL)
	if err != nil {
		o.misconfigured(fdbv1alpha1.ReasonURLInvalid, "the backup's URL cannot be used: %v", err)
		return nil
	}
	if lacking := fdb.Lacking(accounts, place); lacking != "" {
		o.misconfigured(fdbv1alpha1.ReasonCredentialsInvalid,
			"key %q of Secret %q %s; the backup's URL names that account: add it there",
			cmp.Or(reference.Key, "credentials"), reference.SecretName, lacking)
	}
	return nil
}

// noted sets Problem, unless there is one already or problem is nil.
func (o *Objects) noted(problem *gather.Problem) {
	if problem != nil {
		o.misconfigured(problem.Reason, "%s", problem.Message)
	}
}

func (o *Objects) misconfigured(reason, format string, values ...any) {
	if o.Problem == nil {
		o.Problem = &contract.FDBCondition{
			Type: fdbv1alpha1.ConditionMisconfiguredRestore, Reason: reason, Message: fmt.Sprintf(format, values...),
		}
	}
}

// Agents returns a FoundationDBBackup whose agents work for a cluster of the object's namespace: the tools reach database and
// store with the same TLS files. It is that of spec.backupName if its agents work for the cluster; else another one; and if there
// is none, that of spec.backupName, which may be nil.
func (g *Gatherer) Agents(ctx context.Context, o *Objects, cluster string) (*fdbv1alpha1.FoundationDBBackup, error) {
	if o.Backup != nil && gather.ClusterName(o.Backup) == cluster {
		return o.Backup, nil
	}
	list := &fdbv1alpha1.FoundationDBBackupList{}
	err := g.Reader.List(ctx, list, client.InNamespace(o.Object.Namespace))
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("list FoundationDBBackups of namespace %s: %w", o.Object.Namespace, err)
	}
	slices.SortFunc(list.Items, func(a, b fdbv1alpha1.FoundationDBBackup) int {
		if goingA, goingB := !a.DeletionTimestamp.IsZero(), !b.DeletionTimestamp.IsZero(); goingA != goingB {
			if goingA {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	for i := range list.Items {
		if gather.ClusterName(&list.Items[i]) == cluster {
			return &list.Items[i], nil
		}
	}
	return o.Backup, nil
}
