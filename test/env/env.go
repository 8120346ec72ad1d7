package env

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/test/env/kubelet"
	"holdfast.dev/holdfast/test/env/temporalserver"
	"holdfast.dev/holdfast/test/tools"
)

// Names of the components, for Env.Component.
const (
	Etcd                  = "etcd"
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
	Temporal              = "temporal"
	S3                    = "s3"
	Velero                = "velero"
	Worker                = "worker"
	Watcher               = "watcher"
	FDBWorker             = "fdb-worker"
	DrillWorker           = "drill-worker"
)

// Options says what to start. The zero value starts everything but Holdfast itself.
type Options struct {
	// Dir gets all data, logs and kubeconfigs. It must not hold those of an earlier run. Empty means a temporary folder, which
	// Stop removes unless Keep is set.
	Dir  string
	Keep bool
	// Progress gets one line per component that is ready; nil means none.
	Progress io.Writer
	// Without names components to leave out, of Temporal, S3 and Velero; without S3 there is no Velero either. Velero's kinds are
	// always there: without Velero itself a test can write their statuses.
	Without []string

	// Holdfast starts one holdfast-worker and one watcher.
	Holdfast bool
	// Bare leaves the cluster without Holdfast's kinds and roles: it has Velero, and a test installs Holdfast.
	Bare bool
	// ClusterID is their --cluster-id; "default" when empty.
	ClusterID string
	// FoundationDB adds FoundationDB's half: its kinds and rights, and with Holdfast a worker of its own, FDBWorker.
	FoundationDB bool
	// Drills adds what drills need: controllers of Kubernetes, the rights and, with Holdfast, a worker of its own, DrillWorker.
	Drills bool
	// WorkerArgs, FDBWorkerArgs and WatchArgs are added to their flags, HoldfastEnv (KEY=VALUE) to the environment of all.
	WorkerArgs, FDBWorkerArgs, WatchArgs []string
	HoldfastEnv                          []string
	// WatchEnv is added to the environment of watchers alone.
	WatchEnv []string
	// EtcdArgs are added to the flags of etcd.
	EtcdArgs []string
	// ReadyTimeout is how long a component may take to become ready; 90 s when 0.
	ReadyTimeout time.Duration
	// VeleroArgs are added to the flags of velero server; of a flag given twice the last one counts.
	VeleroArgs []string
	// Kubelet starts the kubelet stand-in, for Env.Kubelet; without it no Pod ever runs.
	Kubelet *kubelet.Options
	// GoDefaults has components collect garbage as they do by default. Under the limit that they have otherwise, an API server with
	// 100,000 objects does little else.
	GoDefaults bool
	// Audit has the API server keep a record of what Holdfast's processes ask of it, for Env.Audit.
	Audit bool
	// TemporalServer runs Temporal as it is run in production instead of its development server: four services, history twice, on
	// PostgreSQL. HOLDFAST_TEMPORAL=server in the environment sets it for every stack.
	TemporalServer bool
	// CountStatements, with TemporalServer, has PostgreSQL count the statements that it executes, for Env.TemporalDatabase.
	CountStatements bool
	// TemporalCertificates, with TemporalServer, is for how long the certificates of Temporal and its clients are valid at first;
	// without TLS if 0. Env.RenewTemporalCertificates renews them.
	TemporalCertificates time.Duration
	// Beside is a running stack whose Temporal and S3 server this one uses, with another ClusterID: another Kubernetes cluster of
	// the same fleet. Its Velero writes under a prefix of its own. Stop it before that one.
	Beside *Env
	// SuggestContinueAsNew, when positive, is the number of history events at which Temporal suggests to continue as new.
	SuggestContinueAsNew int
	// Bin gives the paths of binaries by name (those of package tools) that shall not be built.
	Bin map[string]string
}

// Env is a running stack.
type Env struct {
	options Options
	root    string // the checkout
	dir     string
	bin     map[string]string
	users   []user
	client  client.Client
	storage Storage
	kubelet *kubelet.Kubelet       // nil without Options.Kubelet
	server  *temporalserver.Server // nil without Options.TemporalServer

	temporalAddress, temporalUI string
	rolesInstalled              bool // there was something in deploy/rbac

	mu         sync.Mutex
	processes  []*Process // in the order of their start
	deaths     chan *Process
	progress   *progress
	saidCPU    sync.Once
	toldPanics sync.Once
	keptLogs   sync.Once

	life context.Context // until Stop
	end  context.CancelFunc
}

// Start starts the components and returns when all are ready. When that fails, or ctx ends, it stops what it has started;
// the error then carries the end of the log concerned. The context has no effect on the stack after Start has returned.
func Start(ctx context.Context, options Options) (*Env, error) {
	e, err := prepare(options)
	if err != nil {
		return nil, err
	}
	if err := e.start(ctx); err != nil {
		e.Stop()
		return nil, err
	}
	return e, nil
}

func prepare(options Options) (*Env, error) {
	root, err := tools.Root()
	if err != nil {
		return nil, err
	}
	if options.TemporalServer, err = wantsTemporalServer(options); err != nil {
		return nil, err
	}
	if options.ClusterID == "" {
		options.ClusterID = "default"
	}
	dir := options.Dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "holdfast-env-"); err != nil {
			return nil, fmt.Errorf("make a folder for the stack: %w", err)
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	e := &Env{
		options: options, root: root, dir: dir, users: newUsers(),
		deaths: make(chan *Process, 100), progress: newProgress(options.Progress),
	}
	e.life, e.end = context.WithCancel(context.Background())
	if _, err := os.Stat(e.path("data")); err == nil {
		return nil, fmt.Errorf("%s holds the data of an earlier run: choose another folder or remove it", dir)
	}
	for _, sub := range []string{"data", "logs", "kubeconfigs", "pki", "tmp", "home"} {
		if err := os.MkdirAll(e.path(sub), 0o755); err != nil {
			return nil, fmt.Errorf("make a folder for the stack: %w", err)
		}
	}
	return e, nil
}

// Stop ends all processes of the stack, also those that a test has paused, and removes a temporary folder; the logs are copied to
// the folder that HOLDFAST_TEST_LOGS names, if it does. It may be called more than once.
func (e *Env) Stop() {
	e.end()
	if e.kubelet != nil {
		e.kubelet.Stop()
	}
	e.stopAll(Worker, FDBWorker, DrillWorker, Watcher)
	e.stopAll(Velero, KubeControllerManager)
	e.stopAll(append(temporalKinds(), KubeAPIServer, S3, fdbServer)...)
	e.stopAll(Etcd, Postgres)
	e.saidCPU.Do(e.sayCPU)
	e.toldPanics.Do(func() {
		for _, p := range e.Components() {
			e.tellPanic(p)
		}
	})
	e.keptLogs.Do(e.keepLogs)
	if e.server != nil && e.options.Beside == nil {
		e.server.Remove()
	}
	if e.options.Dir == "" && !e.options.Keep {
		_ = os.RemoveAll(e.dir) // a left-over temporary folder harms nobody
	}
}

// keepLogs copies the logs to a folder named like the stack's, below the one that the gate names: it shows them where tests
// failed.
func (e *Env) keepLogs() {
	to := os.Getenv("HOLDFAST_TEST_LOGS")
	if to == "" {
		return
	}
	if err := os.CopyFS(filepath.Join(to, filepath.Base(e.dir)), os.DirFS(e.LogDir())); err != nil {
		e.progress.say("keep the logs: %v", err)
	}
}

// stopAll stops the named components and further ones of the same kind ("worker-2") at the same time.
func (e *Env) stopAll(kinds ...string) {
	const grace = 3 * time.Second // the data are thrown away, nobody needs a long farewell
	var group sync.WaitGroup
	for _, p := range e.Components() {
		if slices.Contains(kinds, p.command.kind) {
			group.Go(func() {
				p.lifecycle.Lock()
				defer p.lifecycle.Unlock()
				if err := p.end(grace); err != nil {
					e.progress.say("%v", err)
				}
			})
		}
	}
	group.Wait()
}

// Component returns a component by name, or nil when this stack has none of that name.
func (e *Env) Component(name string) *Process {
	for _, p := range e.Components() {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// Components returns all components in the order of their start.
func (e *Env) Components() []*Process {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.processes)
}

// Wait returns nil when ctx ends, or an error with the end of the log as soon as a component ends that nobody stopped.
func (e *Env) Wait(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case p := <-e.deaths:
			if !p.Running() { // else it was started again
				return p.failure(fmt.Errorf("%s ended unexpectedly: %w", p.Name(), exitError(p.current().err)))
			}
		}
	}
}

// Client returns a client with all rights, for built-in kinds and unstructured objects.
func (e *Env) Client() client.Client { return e.client }

// Dir returns the folder that holds everything of this stack.
func (e *Env) Dir() string { return e.dir }

// LogDir returns the folder with one log file per component.
func (e *Env) LogDir() string { return e.path("logs") }

// ClusterID returns the --cluster-id that Holdfast runs with.
func (e *Env) ClusterID() string { return e.options.ClusterID }

// Binary returns the path of a program of package tools that this stack uses, "" when it uses none of that name.
func (e *Env) Binary(name string) string { return e.bin[name] }

// TemporalAddress returns host:port of Temporal's frontend.
func (e *Env) TemporalAddress() string { return e.temporalAddress }

// TemporalUI returns the URL of Temporal's Web UI.
func (e *Env) TemporalUI() string { return e.temporalUI }

func (e *Env) path(elements ...string) string {
	return filepath.Join(append([]string{e.dir}, elements...)...)
}

func (e *Env) without(component string) bool {
	return slices.Contains(e.options.Without, component)
}
