package kubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// Options say what the kubelet stand-in is to be: one node, to which it binds every Pod, and whose containers it runs as
// processes of this machine.
//
// A container has no file system of its own. Its volumes are folders, and where a mount path stands in its command,
// arguments or environment, the folder's path is put instead; a mount path that stands elsewhere, such as in a file, is not
// found. Probes, resources and security contexts count for nothing, and every address is loopback.
type Options struct {
	// Images says what an image runs, by "repository:tag" or, for all its tags, by "repository". A registry before the
	// repository and a digest do not matter.
	Images map[string]Image
	// Resolve is asked for images that Images does not name; an error means that there is none. FDBImages makes one.
	Resolve func(image string) (Image, error)
	// MaxGrace caps terminationGracePeriodSeconds; 3 s when zero.
	MaxGrace time.Duration
	// NodeLabels are added to those of the node.
	NodeLabels map[string]string
}

const (
	// NodeName is the name of the kubelet stand-in's node.
	NodeName = "holdfast-node"

	requestTimeout = 10 * time.Second
	retryDelay     = 200 * time.Millisecond
	startPoll      = 50 * time.Millisecond
	startTimeout   = 90 * time.Second

	// loopback is the address of the node and of every Pod.
	loopback = "127.0.0.1"
)

// Kubelet is the kubelet and the scheduler of a stack, in this process. What it does for Pods outlives outages of the API
// server: processes run on, and what it has to say is said when the server is back. Its methods may be called from several
// goroutines.
type Kubelet struct {
	options Options
	client  kubernetes.Interface
	dir     string // one folder per Pod
	logs    string
	images  *images
	reaper  *reaper
	say     func(format string, args ...any)

	ctx    context.Context // its life, not a call's
	cancel context.CancelFunc
	group  sync.WaitGroup
	once   sync.Once

	pods, configMaps, secrets cache.Store
	changed                   chan struct{} // something may have to be done for some Pod

	connected, powered *switched // off while the node is lost

	mu            sync.Mutex
	workers       map[types.UID]*podWorker
	binding       map[types.UID]bool // asked for, or refused for good
	bindingPaused bool
	held          map[types.NamespacedName]int
}

// Start starts the stand-in at an API server, and returns when its node is registered and the Pods are known. It has its
// files in dir, with a folder for each Pod, and the containers' logs in another. It tells say what it does.
func Start(
	ctx context.Context, config *rest.Config, options Options, dir, logs string, say func(format string, args ...any),
) (*Kubelet, error) {
	k, err := newKubelet(config, options, dir, logs)
	if err != nil {
		return nil, err
	}
	k.say = say
	if err := k.start(ctx); err != nil {
		k.Stop()
		return nil, err
	}
	return k, nil
}

func newKubelet(config *rest.Config, options Options, dir, logs string) (*Kubelet, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	for folder, mode := range map[string]os.FileMode{dir: 0o700, logs: 0o755} {
		if err := os.MkdirAll(folder, mode); err != nil {
			return nil, err
		}
	}
	reaper, err := newReaper()
	if err != nil {
		return nil, err
	}
	if options.MaxGrace == 0 {
		options.MaxGrace = 3 * time.Second
	}
	k := &Kubelet{
		options: options, client: client, dir: dir, logs: logs, reaper: reaper, changed: make(chan struct{}, 1),
		images:    &images{known: maps.Clone(options.Images), missing: map[string]bool{}, resolve: options.Resolve},
		connected: newSwitched(), powered: newSwitched(),
		workers: map[types.UID]*podWorker{}, binding: map[types.UID]bool{}, held: map[types.NamespacedName]int{},
	}
	// Every outage of the API server would be in the tests' output otherwise.
	k.ctx, k.cancel = context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	return k, nil
}

// start registers the node and returns when the Pods are known.
func (k *Kubelet) start(ctx context.Context) error {
	if err := await(ctx, func() error { return k.register(ctx) }); err != nil {
		return err
	}
	core := k.client.CoreV1().RESTClient()
	pods := k.follow(core, "pods", &corev1.Pod{}, func(any) { k.wake() })
	k.configMaps = k.follow(core, "configmaps", &corev1.ConfigMap{}, k.refresh)
	k.secrets = k.follow(core, "secrets", &corev1.Secret{}, k.refresh)
	k.pods = pods
	err := await(ctx, func() error {
		if !pods.listed.Load() {
			return errors.New("the Pods are not listed yet")
		}
		return nil
	})
	if err != nil {
		return err
	}
	k.group.Go(k.heartbeat)
	k.group.Go(k.syncLoop)
	k.wake()
	return nil
}

// await repeats do until it succeeds, and returns the last error if it does not for long.
func await(ctx context.Context, do func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, startPoll, startTimeout, true, func(context.Context) (bool, error) {
		last = do()
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// stopLimit is how long Stop waits for what the stand-in does: longer than an execution takes to be killed.
const stopLimit = killGrace + time.Minute

// Stop kills all containers and returns when they are gone. It may be called more than once.
func (k *Kubelet) Stop() {
	k.once.Do(func() {
		k.cancel()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			k.group.Wait()
		}()
		select {
		case <-ended:
		case <-time.After(stopLimit):
			fmt.Fprintf(os.Stderr, "the kubelet stand-in does not end within %s: its containers are killed\n", stopLimit)
		}
		k.reaper.close()
		_ = os.RemoveAll(k.dir) // Secrets lie there
	})
}

// follow keeps the objects of a kind in a store and calls changed with each that is new or differs, with nil after all were
// listed again.
func (k *Kubelet) follow(core cache.Getter, resource string, kind runtime.Object, changed func(any)) *followed {
	store := &followed{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), changed: changed}
	list := cache.NewListWatchFromClient(core, resource, corev1.NamespaceAll, everything)
	reflector := cache.NewReflectorWithOptions(list, kind, store, cache.ReflectorOptions{
		Logger: ptr.To(logr.Discard()), Name: "kubelet-" + resource,
		Backoff: &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Cap: time.Second, Steps: 5},
	})
	k.group.Go(func() { reflector.RunWithContext(k.ctx) })
	return store
}

func (k *Kubelet) wake() {
	select {
	case k.changed <- struct{}{}:
	default: // it is to look again anyway
	}
}

func (k *Kubelet) syncLoop() {
	for k.connected.wait(k.ctx) == nil {
		select {
		case <-k.ctx.Done():
			return
		case <-k.changed:
			if k.connected.on() {
				k.sync()
			} else {
				k.wake() // later
			}
		}
	}
}

// sync hands every Pod to what runs it.
func (k *Kubelet) sync() {
	k.mu.Lock()
	defer k.mu.Unlock()
	there := map[types.UID]bool{}
	for _, item := range k.pods.List() {
		pod, ok := item.(*corev1.Pod)
		if !ok {
			continue
		}
		there[pod.UID] = true
		switch pod.Spec.NodeName {
		case "":
			k.schedule(pod)
		case NodeName:
			k.handOver(pod)
		}
	}
	for uid, worker := range k.workers {
		if !there[uid] {
			worker.gone()
			delete(k.workers, uid)
		}
	}
	for uid := range k.binding {
		if !there[uid] {
			delete(k.binding, uid)
		}
	}
}

func (k *Kubelet) handOver(pod *corev1.Pod) {
	worker := k.workers[pod.UID]
	if worker == nil {
		if ended(pod) {
			return // somebody else wrote its status
		}
		worker = newPodWorker(k, pod)
		k.workers[pod.UID] = worker
		k.group.Go(worker.run)
	}
	worker.see(pod)
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
