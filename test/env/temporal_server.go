package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/durationpb"

	"holdfast.dev/holdfast/test/env/temporalserver"
	"holdfast.dev/holdfast/test/tools"
)

// Names of the processes of Temporal as it is run, for Env.Component, with Options.TemporalServer.
const (
	Postgres         = "postgres"
	TemporalFrontend = "temporal-frontend"
	TemporalHistory  = "temporal-history"
	TemporalHistory2 = "temporal-history-2"
	TemporalMatching = "temporal-matching"
	TemporalWorker   = "temporal-worker"
	TemporalUI       = "temporal-ui"
)

// TemporalServices are the processes of Temporal's own server.
var TemporalServices = []string{TemporalFrontend, TemporalHistory, TemporalHistory2, TemporalMatching, TemporalWorker}

// serviceOf is what each of them serves.
var serviceOf = map[string]string{
	TemporalFrontend: "frontend", TemporalHistory: "history", TemporalHistory2: "history", TemporalMatching: "matching",
	TemporalWorker: "worker",
}

// temporalVariable decides which Temporal stacks have.
const temporalVariable = "HOLDFAST_TEMPORAL"

// temporalRetention is what docs/temporal.md recommends.
const temporalRetention = 30 * 24 * time.Hour

// wantsTemporalServer reports whether a stack runs Temporal's own server.
func wantsTemporalServer(options Options) (bool, error) {
	if options.Beside != nil {
		return false, nil
	}
	switch kind := os.Getenv(temporalVariable); kind {
	case "":
		return options.TemporalServer, nil
	case "server":
		return true, nil
	default:
		return false, fmt.Errorf("%s=%q: it is server, or not set for Temporal's development server", temporalVariable, kind)
	}
}

// startTemporalServer starts PostgreSQL, makes Temporal's schema with its own tool, and starts its four services, history twice.
func (e *Env) startTemporalServer(ctx context.Context) (err error) {
	e.server = &temporalserver.Server{
		DynamicConfig: e.path("data", "temporal-dynamic.yaml"), SuggestContinueAsNew: e.options.SuggestContinueAsNew,
	}
	if err := e.startPostgres(ctx); err != nil {
		return err
	}
	if validity := e.options.TemporalCertificates; validity > 0 {
		if e.server.Certificates, err = temporalserver.NewCertificates(e.path("pki", "temporal"), validity); err != nil {
			return err
		}
	}
	if err := e.server.MakeSchema(ctx, e.bin[tools.TemporalSQLTool], e.baseEnv()); err != nil {
		return err
	}
	for _, name := range TemporalServices {
		ports, err := freePorts.take(4)
		if err != nil {
			return err
		}
		e.server.Services = append(e.server.Services, temporalserver.Service{
			Service: serviceOf[name], GRPC: ports[0], Membership: ports[1], Metrics: ports[2], HTTP: ports[3],
		})
	}
	e.temporalAddress = e.server.Address()
	if err := e.writeFile(e.server.DynamicConfig, e.server.Dynamics()); err != nil {
		return err
	}
	if err := e.startTemporalServices(ctx); err != nil {
		return err
	}
	if err := e.makeTemporalNamespace(ctx); err != nil {
		return err
	}
	return e.startTemporalUI(ctx)
}

// startTemporalServices starts the services side by side. They all write the metadata of a new database, and end if another was
// faster: they are started again then, since they do not serve yet. The worker service comes last: its metrics, by which it is
// found to be ready, are served before that.
func (e *Env) startTemporalServices(ctx context.Context) error {
	group, starting := errgroup.WithContext(ctx)
	last := len(TemporalServices) - 1
	for i, name := range TemporalServices[:last] {
		group.Go(func() error { return e.startTemporalService(starting, name, e.server.Services[i]) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return e.startTemporalService(ctx, TemporalServices[last], e.server.Services[last])
}

func (e *Env) startPostgres(ctx context.Context) error {
	port, err := freePorts.next()
	if err != nil {
		return err
	}
	database, err := temporalserver.NewDatabase(ctx, port, randomToken())
	if err != nil {
		return err
	}
	e.server.Database, database.CountStatements = database, e.options.CountStatements
	_, err = e.launch(ctx, command{
		name: Postgres, kind: Postgres, path: database.Program("postgres"), as: database.As, args: database.Args(),
		addresses: map[string]string{"sql": address(port)}, ready: database.Ready,
		// Its sessions end by themselves when it is killed, and until then their memory keeps it from starting.
		again: 20,
	})
	return err
}

// TemporalDatabase is the database of Temporal's own server, nil without Options.TemporalServer.
func (e *Env) TemporalDatabase() *temporalserver.Database {
	if e.server == nil {
		return nil
	}
	return e.server.Database
}

// SaveTemporal keeps a copy of Temporal's database, and returns what sets it back to that copy, with Temporal stopped meanwhile.
// It needs Options.TemporalServer.
func (e *Env) SaveTemporal(ctx context.Context) (setBack func(context.Context) error, err error) {
	if e.server == nil {
		return nil, errors.New("save Temporal's database: the development server keeps its own (Options.TemporalServer)")
	}
	postgres := e.Component(Postgres)
	if err := errors.Join(postgres.Stop(), e.server.Database.Save(ctx)); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		e.stopAll(temporalKinds()...)
		if err := errors.Join(postgres.Stop(), e.server.Database.SetBack(ctx)); err != nil {
			return err
		}
		if err := postgres.Restart(ctx); err != nil {
			return err
		}
		return e.restartTemporal(ctx)
	}, postgres.Restart(ctx)
}

// temporalKinds are the kinds of Temporal's processes, but for its database.
func temporalKinds() []string { return append(slices.Clone(TemporalServices), Temporal, TemporalUI) }

// restartTemporal starts Temporal's processes again, and waits until it serves.
func (e *Env) restartTemporal(ctx context.Context) error {
	group, starting := errgroup.WithContext(ctx)
	for _, p := range e.Components() {
		if slices.Contains(temporalKinds(), p.command.kind) {
			group.Go(func() error { return p.Restart(starting) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return e.makeTemporalNamespace(ctx)
}

// startTemporalUI starts the Web UI, which the development server has in itself.
func (e *Env) startTemporalUI(ctx context.Context) error {
	port, err := freePorts.next()
	if err != nil {
		return err
	}
	config, err := e.server.UIConfig(port, temporalNamespace)
	if err != nil {
		return err
	}
	dir := e.path("data", "temporal-ui")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make a folder for Temporal's Web UI: %w", err)
	}
	if err := e.writeFile(filepath.Join(dir, "base.yaml"), config); err != nil {
		return err
	}
	e.temporalUI = "http://" + address(port)
	_, err = e.launch(ctx, command{
		name: TemporalUI, kind: TemporalUI, path: e.bin[tools.TemporalUI],
		args:      []string{"--root", e.path("data"), "--config", filepath.Base(dir), "start"},
		addresses: map[string]string{"ui": address(port)}, ready: tcpReady(address(port)),
	})
	return err
}

func (e *Env) startTemporalService(ctx context.Context, name string, service temporalserver.Service) error {
	config, err := e.server.Config(service)
	if err != nil {
		return err
	}
	file := e.path("data", name+".yaml")
	if err := e.writeFile(file, config); err != nil {
		return err
	}
	serves := service.GRPC
	if name == TemporalWorker {
		serves = service.Metrics // it serves nothing else
	}
	_, err = e.launch(ctx, command{
		name: name, kind: name, path: e.bin[tools.TemporalServer],
		args:      []string{"--config-file", file, "--allow-no-auth", "start", "--service", service.Service},
		addresses: map[string]string{"grpc": address(service.GRPC), "metrics": address(service.Metrics)},
		ready:     tcpReady(address(serves)),
		again:     2, // it ends if it finds no other member of the ring in time
	})
	return err
}

// makeTemporalNamespace registers the namespace that the development server has by itself, and waits until it serves.
func (e *Env) makeTemporalNamespace(ctx context.Context) error {
	options, err := e.TemporalOptions()
	if err != nil {
		return err
	}
	namespaces, err := client.NewNamespaceClient(options)
	if err != nil {
		return fmt.Errorf("make a client for Temporal: %w", err)
	}
	defer namespaces.Close()
	limited, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := namespaces.Register(limited, &workflowservice.RegisterNamespaceRequest{
			Namespace: temporalNamespace, WorkflowExecutionRetentionPeriod: durationpb.New(temporalRetention),
		})
		var there *serviceerror.NamespaceAlreadyExists
		if err == nil || errors.As(err, &there) {
			if err = temporalReady(limited, options); err == nil {
				return nil
			}
		}
		select {
		case <-limited.Done():
			return fmt.Errorf("make Temporal's namespace %s: %w", temporalNamespace, errors.Join(err, limited.Err()))
		case <-time.After(readyPoll):
		}
	}
}

// TemporalOptions are those of a client of the stack's Temporal.
func (e *Env) TemporalOptions() (client.Options, error) {
	options := client.Options{HostPort: e.temporalAddress, Namespace: temporalNamespace, Logger: QuietLogger()}
	if e.server == nil || e.server.Certificates == nil {
		return options, nil
	}
	config, err := e.server.Certificates.Client()
	options.ConnectionOptions.TLS = config
	return options, err
}

// temporalEnvironment has Holdfast's processes find Temporal, with certificates where it wants them.
func (e *Env) temporalEnvironment() []string {
	environment := []string{"TEMPORAL_ADDRESS=" + e.temporalAddress}
	if e.server != nil {
		environment = append(environment, e.server.Certificates.Environment()...)
	}
	return environment
}

// RenewTemporalCertificates replaces the certificates of Temporal's server and of its clients in their files.
func (e *Env) RenewTemporalCertificates(validity time.Duration) error {
	return e.server.Certificates.Renew(validity)
}

func (e *Env) writeFile(path string, content []byte) error {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
