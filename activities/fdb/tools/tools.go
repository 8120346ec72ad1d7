package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/worker"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/fdb/agents"
	"holdfast.dev/holdfast/activities/fdb/gather"
	"holdfast.dev/holdfast/activities/fdbtool"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/k8s/metrics"
	"holdfast.dev/holdfast/workflows/contract"
)

// Tools queries and changes FoundationDB by its own tools, for one FoundationDBBackup at a time. It uses only the secrets of that
// object's namespace, and reads them for each call.
type Tools struct {
	// Reader reads at the API server itself.
	Reader client.Reader
	Runner *fdbtool.Runner
	// Locker is nil where no other operator changes backups.
	Locker FDBLocker
	// Others run the commands for objects of other kinds.
	Others Commands

	describes Places
}

// Commands run the commands of owners by their operation.
type Commands map[contract.FDBOperation]func(context.Context, contract.FDBCommand) (contract.FDBOutcome, error)

// FDBLocker acquires the lock by which the FoundationDB operators of several Kubernetes clusters take turns.
type FDBLocker interface {
	// Locked calls do while it holds the lock of the database, with a context that ends if the lock is lost. If it returns an error
	// without calling do, the lock was not acquired.
	Locked(ctx context.Context, clusterFile string, do func(ctx context.Context) error) error
}

// Register registers the activities with a worker under their wire names.
func (t *Tools) Register(registry worker.ActivityRegistry) {
	activities.RegisterGuarded(registry, activities.NeverPaused, contract.InspectFDBBackup, t.Inspect)
	activities.RegisterGuarded(registry, activities.NeverPaused, contract.RunFDBCommand, t.Command)
}

// reach is one object with what it takes to run tools for it.
type reach struct {
	*gather.Objects
	*fdbtool.Session
	method fdb.Method
	// store says why the object store cannot be used; nil if it can.
	store *contract.FDBFailure
}

// reach reads what is needed to run tools for an object. It returns nil if there is no such object. A failure says what the user
// or the operator has to repair before the database can be queried. The caller closes the session.
func (t *Tools) reach(ctx context.Context, ref contract.ObjectRef) (*reach, *contract.FDBFailure, error) {
	gatherer := gather.Gatherer{Reader: t.Reader}
	objects, err := gatherer.Gather(ctx, ref)
	if err != nil || objects.Object == nil {
		return nil, nil, err
	}
	reach := &reach{Objects: objects}
	if !objects.Reachable() {
		return reach, &contract.FDBFailure{Class: contract.FDBClassClusterFile, Message: objects.Problem.Message}, nil
	}
	method, known := fdb.MethodOf(objects.Object.Spec.BackupType)
	if !known {
		return reach, OtherFailure("this Holdfast does not know spec.backupType %.40q", objects.Object.Spec.BackupType), nil
	}
	reach.method = method
	if objects.Credentials == nil {
		reach.store = OtherFailure("%s", objects.Problem.Message)
	}
	tls, trouble, err := ReadTLS(ctx, t.Reader, objects.Object)
	switch {
	case err != nil:
		return nil, nil, err
	case trouble != nil && strings.Contains(objects.Cluster.ConnectionString, ":tls"):
		return reach, trouble, nil
	case trouble != nil && reach.store == nil:
		reach.store = trouble // the database needs no TLS, the store may
	}
	session, trouble, err := t.Runner.Open(fdbtool.Access{
		ConnectionString: objects.Cluster.ConnectionString, Version: objects.Cluster.Version,
		Credentials: objects.Credentials, TLS: tls,
	})
	if err != nil {
		return nil, nil, err
	}
	reach.Session = session
	return reach, trouble, nil
}

// Run is Session.Run, counted and measured.
func (r *reach) Run(ctx context.Context, operation fdbtool.Operation, args []string) ([]byte, *contract.FDBFailure) {
	return RunTool(ctx, r.Session, operation, args)
}

// RunTool runs one of FoundationDB's tools in a session, with heartbeats.
func RunTool(
	ctx context.Context, session *fdbtool.Session, operation fdbtool.Operation, args []string,
) ([]byte, *contract.FDBFailure) {
	began, class := time.Now(), contract.FDBClass("")
	output, trouble := session.Run(ctx, operation, args)
	if trouble != nil {
		class = trouble.Class
	}
	metrics.ToolRun(string(operation), string(class), time.Since(began))
	return output, trouble
}

// close removes the secrets.
func (r *reach) close(err *error) {
	if r != nil && r.Session != nil {
		*err = errors.Join(*err, r.Session.Close())
	}
}

// ReadTLS reads the TLS files that the agents of a backup use.
func ReadTLS(
	ctx context.Context, reader client.Reader, backup *fdbv1alpha1.FoundationDBBackup,
) (fdbtool.TLS, *contract.FDBFailure, error) {
	var tls fdbtool.TLS
	wanted, err := agents.TLSFiles(backup)
	var template *agents.TemplateError
	if errors.As(err, &template) {
		return tls, OtherFailure("%s", template.Message), nil
	}
	if err != nil {
		return tls, nil, err
	}
	tls.VerifyPeers = wanted.VerifyPeers
	var password []byte
	for _, part := range []struct {
		variable string
		source   *agents.Source
		into     *[]byte
	}{
		{agents.EnvTLSCertificate, wanted.Certificate, &tls.Certificate},
		{agents.EnvTLSKey, wanted.Key, &tls.Key},
		{agents.EnvTLSCA, wanted.CA, &tls.CA},
		{agents.EnvTLSPassword, wanted.Password, &password},
	} {
		if part.source == nil {
			continue
		}
		content, found, err := readSource(ctx, reader, backup.Namespace, part.source)
		if err != nil {
			return tls, nil, err
		}
		if !found {
			return tls, OtherFailure("there is no %s, which spec.podTemplateSpec names for %s", describeSource(part.source),
				part.variable), nil
		}
		*part.into = content
	}
	tls.Password = string(password)
	return tls, nil, nil
}

// readSource reads a key of a Secret or of a ConfigMap.
func readSource(ctx context.Context, reader client.Reader, namespace string, source *agents.Source) ([]byte, bool, error) {
	if source.Secret != "" {
		secret := &corev1.Secret{}
		exists, err := gather.Find(ctx, reader, "Secret", namespace, source.Secret, secret)
		content, has := secret.Data[source.Key]
		return content, exists && has, err
	}
	config := &corev1.ConfigMap{}
	exists, err := gather.Find(ctx, reader, "ConfigMap", namespace, source.ConfigMap, config)
	if text, has := config.Data[source.Key]; has {
		return []byte(text), exists, err
	}
	content, has := config.BinaryData[source.Key]
	return content, exists && has, err
}

func describeSource(source *agents.Source) string {
	if source.Secret != "" {
		return fmt.Sprintf("key %q in Secret %q", source.Key, source.Secret)
	}
	return fmt.Sprintf("key %q in ConfigMap %q", source.Key, source.ConfigMap)
}

// status queries the state of a tag.
func (r *reach) status(ctx context.Context, tag string) (fdb.Status, *contract.FDBFailure) {
	output, trouble := r.Run(ctx, fdbtool.Status, r.method.Status(tag, true))
	if trouble != nil {
		return fdb.Status{}, trouble
	}
	status, err := fdb.ParseStatus(output)
	if err != nil {
		return fdb.Status{}, OtherFailure("fdbbackup status gave no usable answer: %s", r.Redact(err.Error()))
	}
	return status, nil
}

// OtherFailure is a failure that no class describes.
func OtherFailure(format string, values ...any) *contract.FDBFailure {
	return &contract.FDBFailure{Class: contract.FDBClassOther, Message: fdb.Bound(fmt.Sprintf(format, values...), MaxFDBMessage)}
}

// MaxFDBMessage bounds the message of a failure.
const MaxFDBMessage = 512
