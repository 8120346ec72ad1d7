package restore

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"go.temporal.io/sdk/worker"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fdb/gather"
	"holdfast.dev/holdfast/activities/fdb/tools"
	"holdfast.dev/holdfast/activities/fdbtool"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/workflows/contract"
)

// Tools queries and changes FoundationDB by its own tools, for one FoundationDBRestore at a time. It uses only the secrets of
// that object's namespace, and reads them for each call.
type Tools struct {
	// Reader reads at the API server itself.
	Reader client.Reader
	Runner *fdbtool.Runner
	// Locker is nil where no other operator changes backups.
	Locker tools.FDBLocker

	describes tools.Places
}

// Register registers the activities with a worker under their wire names.
func (t *Tools) Register(registry worker.ActivityRegistry) {
	activities.RegisterGuarded(registry, activities.NeverPaused, contract.InspectFDBRestore, t.Inspect)
	activities.RegisterGuarded(registry, activities.NeverPaused, contract.RunFDBRestoreCommand, t.Command)
	activities.RegisterGuarded(registry, activities.NeverPaused, contract.FinalizeFDBRestore, t.Finalize)
}

// Reach is one object with what it takes to run tools for its destination.
type Reach struct {
	*Objects
	*fdbtool.Session
	method fdb.Method
	// open opens a session for another cluster of the object's namespace.
	open func(ctx context.Context, cluster *gather.Cluster) (*fdbtool.Session, *contract.FDBFailure, error)
}

// reach reads what is needed to run tools for an object. It returns nil if there is no such object. A failure says what the user
// or the operator has to repair before the destination can be queried. The caller calls Done.
func (t *Tools) reach(ctx context.Context, ref contract.ObjectRef) (*Reach, *contract.FDBFailure, error) {
	gatherer := &Gatherer{Reader: t.Reader}
	objects, err := gatherer.Gather(ctx, ref)
	if err != nil || objects.Object == nil {
		return nil, nil, err
	}
	return t.reachWith(ctx, gatherer, objects)
}

// ReachFor reads what is needed to run tools for a restore that need not be stored: to find out whether its destination is fit
// for it. A failure says what has to be repaired before. The caller calls Done.
func (t *Tools) ReachFor(
	ctx context.Context, object *fdbv1alpha1.FoundationDBRestore,
) (*Reach, *contract.FDBFailure, error) {
	gatherer := &Gatherer{Reader: t.Reader}
	objects, err := gatherer.GatherFor(ctx, object)
	if err != nil {
		return nil, nil, err
	}
	return t.reachWith(ctx, gatherer, objects)
}

func (t *Tools) reachWith(ctx context.Context, gatherer *Gatherer, objects *Objects) (*Reach, *contract.FDBFailure, error) {
	method, _ := fdb.MethodOf("")
	reach := &Reach{Objects: objects, method: method}
	reach.open = func(ctx context.Context, cluster *gather.Cluster) (*fdbtool.Session, *contract.FDBFailure, error) {
		return t.open(ctx, gatherer, objects, cluster)
	}
	if !objects.Cluster.Reachable() {
		return reach, &contract.FDBFailure{Class: contract.FDBClassClusterFile, Message: objects.Problem.Message}, nil
	}
	session, trouble, err := reach.open(ctx, objects.Cluster)
	reach.Session = session
	return reach, trouble, err
}

// open opens a session for a cluster, with the TLS files of the agents that work for it.
func (t *Tools) open(
	ctx context.Context, gatherer *Gatherer, objects *Objects, cluster *gather.Cluster,
) (*fdbtool.Session, *contract.FDBFailure, error) {
	access := fdbtool.Access{
		ConnectionString: cluster.ConnectionString, Version: cluster.Version, Credentials: objects.Credentials,
	}
	needed := strings.Contains(cluster.ConnectionString, ":tls")
	backup, err := gatherer.Agents(ctx, objects, cluster.Name)
	switch {
	case err != nil:
		return nil, nil, err
	case backup == nil && needed:
		return nil, tools.OtherFailure("FoundationDBCluster %q uses TLS, and no FoundationDBBackup of it names the certificates "+
			"in spec.podTemplateSpec: create one (it may be Stopped)", cluster.Name), nil
	case backup == nil:
		return t.Runner.Open(access)
	}
	tls, trouble, err := tools.ReadTLS(ctx, t.Reader, backup)
	switch {
	case err != nil:
		return nil, nil, err
	case trouble != nil && needed:
		return nil, tools.OtherFailure("FoundationDBBackup %q: %s", backup.Name, trouble.Message), nil
	case trouble == nil:
		access.TLS = tls // a store that needs TLS says so itself
	}
	return t.Runner.Open(access)
}

// Run is Session.Run, counted and measured.
func (r *Reach) Run(ctx context.Context, operation fdbtool.Operation, args []string) ([]byte, *contract.FDBFailure) {
	return tools.RunTool(ctx, r.Session, operation, args)
}

// Done removes the secrets.
func (r *Reach) Done(err *error) {
	if r != nil && r.Session != nil {
		*err = errors.Join(*err, r.Session.Close())
	}
}

// Status queries the state of a tag; nil if there never was a restore on it.
func (r *Reach) Status(ctx context.Context, tag string) (*contract.FDBRestoreProgress, *contract.FDBFailure) {
	output, trouble := r.Run(ctx, fdbtool.RestoreStatus, []string{"status", "-t", tag})
	if trouble != nil {
		return nil, trouble
	}
	progress, err := restoretool.ParseRestoreStatus(output, tag)
	if err != nil {
		return nil, tools.OtherFailure("%s", r.Redact(err.Error()))
	}
	if progress != nil {
		progress.LastError = r.Redact(progress.LastError)
	}
	return progress, nil
}

// Database queries the state of the database itself.
func (r *Reach) Database(ctx context.Context) (restoretool.DatabaseStatus, *contract.FDBFailure) {
	return databaseStatus(ctx, r.Session)
}

// AnswerLimit is fdbtool.AnswerLimit as an argument of fdbcli.
var AnswerLimit = []string{"--timeout", strconv.Itoa(int(fdbtool.AnswerLimit.Seconds()))}

func databaseStatus(ctx context.Context, session *fdbtool.Session) (restoretool.DatabaseStatus, *contract.FDBFailure) {
	output, trouble := tools.RunTool(ctx, session, fdbtool.DatabaseStatus, append([]string{"--exec", "status json"}, AnswerLimit...))
	if trouble != nil {
		return restoretool.DatabaseStatus{}, trouble
	}
	status, err := restoretool.ParseDatabaseStatus(output)
	if err != nil {
		return status, tools.OtherFailure("%s", session.Redact(err.Error()))
	}
	if !status.Available {
		return status, &contract.FDBFailure{
			Class: contract.FDBClassTimeout, Message: "the database is not available: fdbcli reaches no quorum of its coordinators, " +
				"or it is recovering; this is retried",
		}
	}
	return status, nil
}

// unready says why the container cannot be read; nil if it can.
func (r *Reach) unready() *contract.FDBFailure {
	if r.Problem != nil {
		return tools.OtherFailure("%s", r.Problem.Message)
	}
	return r.CheckURL(r.URL)
}
