package gather

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// connectionString is description:id@coordinator,...; its groups are the description and the ID, which never change. The text is
// written into a cluster file, so nothing else is allowed in it.
var connectionString = regexp.MustCompile(`^([A-Za-z0-9_]+):([A-Za-z0-9]+)@[][A-Za-z0-9.:,()_-]+$`)

// clusterVersion is a version whose first two numbers name a folder of tools.
var clusterVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[A-Za-z0-9.]+)?$`)

// defaultSnapshotPeriod is 7 days, for an object that was stored without its defaults.
const defaultSnapshotPeriod = 7 * 24 * 60 * 60

// Gatherer reads what concerns one FoundationDBBackup. Reader is the API server in the worker, the cache in the watcher.
type Gatherer struct {
	Reader client.Reader
}

// Cluster is what is needed of a FoundationDBCluster to reach its database.
type Cluster struct {
	Name string
	// ConnectionString is status.connectionString; empty until it is valid.
	ConnectionString string
	// Version is the version that the cluster runs; empty until it is valid.
	Version string
}

// Objects is what was read about one FoundationDBBackup. The objects are the reader's own: copy before changing. The credentials
// in it are secret.
type Objects struct {
	// Object is nil when no object of the requested UID exists; nothing else is read then.
	Object *fdbv1alpha1.FoundationDBBackup
	// Cluster is nil when there is no FoundationDBCluster of that name.
	Cluster *Cluster
	// Deployment is the one of the object's name, which somebody else may have made; nil if there is none.
	Deployment *appsv1.Deployment
	// Credentials is the credentials file and Accounts are those in it; nil without a valid one.
	Credentials []byte
	Accounts    []fdb.Account
	// Destination is the zero value unless it could be resolved.
	Destination fdb.Destination
	// Problem is the first thing that keeps a backup from being started, as a condition; nil if nothing does.
	Problem *contract.FDBCondition
}

// Gather reads the objects. An error means that one could not be read, never that something is absent or invalid.
func (g *Gatherer) Gather(ctx context.Context, ref contract.ObjectRef) (*Objects, error) {
	object := &fdbv1alpha1.FoundationDBBackup{}
	exists, err := k8s.Get(ctx, g.Reader, fdbv1alpha1.KindFoundationDBBackup, ref.Namespace, ref.Name, object)
	if err != nil {
		return nil, err
	}
	if !exists || string(object.UID) != ref.UID {
		return &Objects{}, nil
	}
	objects := &Objects{Object: object}
	deployment := &appsv1.Deployment{}
	exists, err = k8s.Get(ctx, g.Reader, "Deployment", object.Namespace, object.Name, deployment)
	if err != nil {
		return nil, err
	}
	if exists {
		objects.Deployment = deployment
	}
	if err := g.readCluster(ctx, objects); err != nil {
		return nil, err
	}
	if err := g.readCredentials(ctx, objects); err != nil {
		return nil, err
	}
	objects.noted(KeyRangesProblem(objects.Desired().KeyRanges))
	return objects, nil
}

// Find reads an object that a user has named, and reports whether it exists. It does not query the API server for a name that no
// object can have: the answer would not be "not found".
func Find(ctx context.Context, reader client.Reader, kind, namespace, name string, into client.Object) (bool, error) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return false, nil
	}
	return k8s.Get(ctx, reader, kind, namespace, name, into)
}

// ClusterName returns the name of the FoundationDBCluster of a FoundationDBBackup.
func ClusterName(object *fdbv1alpha1.FoundationDBBackup) string {
	return cmp.Or(object.Spec.ClusterName, object.Name)
}

func (g *Gatherer) readCluster(ctx context.Context, o *Objects) error {
	cluster, problem, err := ReadCluster(ctx, g.Reader, o.Object.Namespace, ClusterName(o.Object),
		"create a FoundationDBBackup with the right spec.clusterName")
	o.Cluster = cluster
	o.noted(problem)
	return err
}

// Problem is what keeps a spec from being carried out: a reason of a condition, with a message for people.
type Problem struct{ Reason, Message string }

func problem(reason, format string, values ...any) *Problem {
	return &Problem{Reason: reason, Message: fmt.Sprintf(format, values...)}
}

// KeyRangesProblem returns why the tools would refuse the ranges of a spec, each as "start end"; nil if they do not.
func KeyRangesProblem(ranges []string) *Problem {
	if _, err := fdb.ParseKeyRanges(ranges); err != nil {
		return problem(fdbv1alpha1.ReasonKeyRangesInvalid, "spec.keyRanges: %v", err)
	}
	return nil
}

// ReadCluster reads what is needed of a FoundationDBCluster; nil if there is none of that name. The problem says what is missing
// to reach its database. otherwise is the advice to users if the name is wrong.
func ReadCluster(ctx context.Context, reader client.Reader, namespace, name, otherwise string) (*Cluster, *Problem, error) {
	found := &foundationdbv1beta2.FoundationDBCluster{}
	exists, err := Find(ctx, reader, "FoundationDBCluster", namespace, name, found)
	switch {
	case meta.IsNoMatchError(err):
		return nil, problem(fdbv1alpha1.ReasonClusterMissing, "there is no kind FoundationDBCluster (%s) here: install the "+
			"FoundationDB operator", foundationdbv1beta2.GroupVersion), nil
	case err != nil:
		return nil, nil, err
	case !exists:
		return nil, problem(fdbv1alpha1.ReasonClusterMissing, "there is no FoundationDBCluster %q in namespace %s: create it, or %s",
			name, namespace, otherwise), nil
	}
	cluster := &Cluster{Name: name}
	var unready *Problem
	if version := found.Version(); clusterVersion.MatchString(version) {
		cluster.Version = version
	} else {
		unready = problem(fdbv1alpha1.ReasonClusterNotReady, "FoundationDBCluster %q has no valid version: neither "+
			"status.runningVersion nor spec.version is one like 7.3.48", name)
	}
	if text := found.Status.ConnectionString; connectionString.MatchString(text) {
		cluster.ConnectionString = text
	} else {
		unready = problem(fdbv1alpha1.ReasonClusterNotReady, "FoundationDBCluster %q has no valid status.connectionString yet: "+
			"the FoundationDB operator writes it once the database is configured", name)
	}
	return cluster, unready, nil
}

func (g *Gatherer) readCredentials(ctx context.Context, o *Objects) error {
	file, accounts, problem, err := ReadCredentials(ctx, g.Reader, o.Object.Namespace, o.Object.Spec.Credentials)
	o.noted(problem)
	if err != nil || problem != nil {
		return err
	}
	o.Credentials, o.Accounts = file, accounts
	destination, err := fdb.Resolve(o.Object, inUseFirst(accounts, o.Object))
	var invalid *fdb.DestinationError
	switch {
	case errors.As(err, &invalid):
		o.misconfigured(fdbv1alpha1.ReasonDestinationInvalid, "%s", invalid.Error())
	case err != nil:
		return fmt.Errorf("destination of %s/%s: %w", o.Object.Namespace, o.Object.Name, err)
	default:
		o.Destination = destination
	}
	return nil
}

// ReadCredentials reads a credentials file with its accounts. It is secret. The problem says why there is no valid one.
func ReadCredentials(
	ctx context.Context, reader client.Reader, namespace string, reference fdbv1alpha1.CredentialsReference,
) ([]byte, []fdb.Account, *Problem, error) {
	key := cmp.Or(reference.Key, "credentials")
	secret := &corev1.Secret{}
	exists, err := Find(ctx, reader, "Secret", namespace, reference.SecretName, secret)
	if err != nil {
		return nil, nil, nil, err
	}
	file, has := secret.Data[key]
	switch {
	case !exists:
		return nil, nil, problem(fdbv1alpha1.ReasonSecretMissing, "there is no Secret %q in namespace %s: create it with a "+
			"credentials file of FoundationDB under the key %q", reference.SecretName, namespace, key), nil
	case !has:
		return nil, nil, problem(fdbv1alpha1.ReasonSecretMissing, "Secret %q has no key %q: put a credentials file of FoundationDB "+
			"there, or correct spec.credentials.key", reference.SecretName, key), nil
	}
	accounts, err := fdb.ParseAccounts(file)
	if err != nil {
		return nil, nil, problem(fdbv1alpha1.ReasonCredentialsInvalid, "key %q of Secret %q is not a credentials file of "+
			"FoundationDB: %v",
			key, reference.SecretName, err), nil
	}
	return file, accounts, nil, nil
}

// noted sets Problem, unless there is one already or problem is nil.
func (o *Objects) noted(problem *Problem) {
	if problem != nil {
		o.misconfigured(problem.Reason, "%s", problem.Message)
	}
}

// misconfigured sets Problem, unless there is one already.
func (o *Objects) misconfigured(reason, format string, values ...any) {
	if o.Problem == nil {
		o.Problem = &contract.FDBCondition{
			Type: fdbv1alpha1.ConditionMisconfiguredBackup, Reason: reason, Message: fmt.Sprintf(format, values...),
		}
	}
}

// Reachable reports whether address and version of the database are known: enough to query its state, to abort, to pause and to
// resume.
func (o *Objects) Reachable() bool { return o.Cluster.Reachable() }

// Owner is Cluster.Owner.
func (o *Objects) Owner() string { return o.Cluster.Owner() }

// Reachable reports whether address and version of the database are known.
func (c *Cluster) Reachable() bool { return c != nil && c.ConnectionString != "" && c.Version != "" }

// Owner returns the description:id of the database, which stays the same when its coordinators change; empty if it is not
// known.
func (c *Cluster) Owner() string {
	if c == nil {
		return ""
	}
	parts := connectionString.FindStringSubmatch(c.ConnectionString)
	if parts == nil {
		return ""
	}
	return parts[1] + ":" + parts[2]
}

// Desired returns what the spec says. Its URL is empty unless the destination could be resolved.
func (o *Objects) Desired() contract.FDBDesired {
	spec := o.Object.Spec
	desired := contract.FDBDesired{
		State:                 string(cmp.Or(spec.BackupState, fdbv1alpha1.BackupStateRunning)),
		Tag:                   cmp.Or(spec.Tag, "default"),
		TimestampFormat:       fdb.DefaultTimestampFormat,
		SnapshotPeriodSeconds: cmp.Or(spec.SnapshotPeriodSeconds, defaultSnapshotPeriod),
	}
	if o.Destination.Host != "" {
		desired.URL = o.Destination.URL()
	}
	if spec.Destination.TimestampFormat != nil {
		desired.TimestampFormat = *spec.Destination.TimestampFormat
	}
	for _, keys := range spec.KeyRanges {
		desired.KeyRanges = append(desired.KeyRanges, keys.Start+" "+keys.End)
	}
	return desired
}

// inUseFirst moves the account of the newest started backup to the front, if the file has it: keys that are rotated or sorted in
// another way do not move a backup.
func inUseFirst(accounts []fdb.Account, object *fdbv1alpha1.FoundationDBBackup) []fdb.Account {
	for _, entry := range slices.Backward(object.Status.Backups) {
		place, err := fdb.ParseURL(entry.URL)
		if err != nil || entry.State == fdb.StateNeverRan {
			continue
		}
		at := slices.Index(accounts, fdb.Account{Name: place.Account, Host: place.Host})
		if at < 0 {
			return accounts
		}
		return slices.Concat(accounts[at:at+1], accounts[:at], accounts[at+1:])
	}
	return accounts
}
