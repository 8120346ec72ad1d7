package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podWorker runs one Pod, from its binding to its disappearance.
type podWorker struct {
	k               *Kubelet
	uid             types.UID
	namespace, name string
	dir             string
	started         metav1.Time

	// ending ends when the containers are to end, killing when they must.
	// closed ends when the Pod is nobody's business any more.
	ending, killing, closed context.Context // the Pod's life, not a call's
	end, kill, close        context.CancelFunc

	seen, vanished chan struct{}
	dirty, stale   chan struct{} // the status differs from what the API server has; the volumes may differ
	vanishOnce     sync.Once
	pushing        sync.Mutex
	pushed         *corev1.PodStatus // guarded by pushing

	mu           sync.Mutex
	pod          *corev1.Pod // as seen last
	inits, mains []*container
	mounted      bool // all volumes are laid out
	initialized  bool
	done         bool     // no container runs, and none will
	verdict      *verdict // why it failed, whatever its containers say
	conditions   []corev1.PodCondition
}

type verdict struct{ reason, message string }

func newPodWorker(k *Kubelet, pod *corev1.Pod) *podWorker {
	w := &podWorker{
		k: k, uid: pod.UID, namespace: pod.Namespace, name: pod.Name, pod: pod, started: metav1.Now(),
		dir:  filepath.Join(k.dir, string(pod.UID)),
		seen: make(chan struct{}, 1), vanished: make(chan struct{}),
		dirty: make(chan struct{}, 1), stale: make(chan struct{}, 1),
	}
	w.ending, w.end = context.WithCancel(k.ctx)
	w.killing, w.kill = context.WithCancel(k.ctx)
	w.closed, w.close = context.WithCancel(k.ctx)
	for _, c := range pod.Spec.InitContainers {
		w.inits = append(w.inits, &container{spec: c, state: waiting("PodInitializing", "")})
	}
	reason := "ContainerCreating"
	if len(w.inits) > 0 {
		reason = "PodInitializing"
	}
	for _, c := range pod.Spec.Containers {
		w.mains = append(w.mains, &container{spec: c, state: waiting(reason, "")})
	}
	return w
}

// run returns when the Pod is gone or the kubelet stops; no process of it is left then.
func (w *podWorker) run() {
	var group sync.WaitGroup
	defer func() {
		w.end()
		w.kill()
		w.close()
		group.Wait()
		_ = os.RemoveAll(w.dir)
	}()
	finished := make(chan struct{})
	group.Go(func() {
		defer close(finished)
		w.runContainers()
	})
	group.Go(w.pushLoop)
	group.Go(w.renewLoop)
	deadline, stop := w.deadline()
	defer stop()
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	for {
		select {
		case <-w.k.ctx.Done():
			return
		case <-w.vanished:
			return
		case <-deadline:
			w.condemn("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
			deadline = nil
		case <-finished:
			w.update(func() { w.done = true })
			finished = nil
		case <-w.seen:
		case <-retry.C:
		}
		if !w.terminating() {
			continue
		}
		w.endWithin(w.grace())
		if finished != nil {
			continue
		}
		if w.remove() {
			return
		}
		retry.Reset(retryDelay)
	}
}

// see takes the Pod as it is now in the API server.
func (w *podWorker) see(pod *corev1.Pod) {
	w.mu.Lock()
	w.pod = pod
	w.mu.Unlock()
	notify(w.seen)
}

// gone says that the Pod is no longer in the API server.
func (w *podWorker) gone() { w.vanishOnce.Do(func() { close(w.vanished) }) }

func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will look anyway
	}
}

func (w *podWorker) current() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pod
}

// update changes what the status is made of.
func (w *podWorker) update(change func()) {
	w.mu.Lock()
	change()
	w.mu.Unlock()
	notify(w.dirty)
}

// terminating tells whether the Pod is to go now.
func (w *podWorker) terminating() bool {
	return w.current().DeletionTimestamp != nil && w.k.connected.on() && !w.k.holds(w.namespace, w.name)
}

func (w *podWorker) grace() time.Duration {
	pod := w.current()
	seconds := pod.Spec.TerminationGracePeriodSeconds
	if pod.DeletionGracePeriodSeconds != nil {
		seconds = pod.DeletionGracePeriodSeconds
	}
	if seconds == nil {
		return w.k.options.MaxGrace
	}
	return min(time.Duration(*seconds)*time.Second, w.k.options.MaxGrace)
}

// endWithin asks the containers to end and kills them after the grace. A later call changes nothing.
func (w *podWorker) endWithin(grace time.Duration) {
	if w.ending.Err() != nil {
		return
	}
	w.end()
	time.AfterFunc(grace, w.kill)
}

// condemn ends the Pod as failed.
func (w *podWorker) condemn(reason, message string) {
	w.mu.Lock()
	decided := w.done || w.verdict != nil
	if !decided {
		w.verdict = &verdict{reason, message}
	}
	w.mu.Unlock()
	if !decided {
		w.endWithin(w.grace())
	}
}

// deadline is the channel of activeDeadlineSeconds, nil when there is none.
func (w *podWorker) deadline() (<-chan time.Time, func()) {
	seconds := w.current().Spec.ActiveDeadlineSeconds
	if seconds == nil {
		return nil, func() {}
	}
	timer := time.NewTimer(time.Duration(*seconds) * time.Second)
	return timer.C, func() { timer.Stop() }
}

// runContainers lays out the volumes and runs the containers: those of the initialization one after the other, then the rest
// at the same time.
func (w *podWorker) runContainers() {
	if !w.mountAll() {
		return
	}
	policy := w.current().Spec.RestartPolicy
	initPolicy := policy
	if policy == corev1.RestartPolicyAlways {
		initPolicy = corev1.RestartPolicyOnFailure
	}
	var sidecars sync.WaitGroup
	defer sidecars.Wait()
	for _, c := range w.inits {
		if c.sidecar() {
			sidecars.Go(func() { w.runContainer(c, corev1.RestartPolicyAlways) })
		} else if !w.runContainer(c, initPolicy) {
			w.endWithin(w.grace())
			return
		}
	}
	if w.ending.Err() != nil {
		return
	}
	w.update(func() {
		w.initialized = true
		for _, c := range w.mains {
			c.state = waiting("ContainerCreating", "")
		}
	})
	var group sync.WaitGroup
	for _, c := range w.mains {
		group.Go(func() { w.runContainer(c, policy) })
	}
	group.Wait()
	w.endWithin(w.grace()) // concerns only sidecars
}

// remove says how the Pod ended and takes it out of the API server. False means: try again.
func (w *podWorker) remove() bool {
	if !w.push() {
		return false
	}
	ctx, cancel := context.WithTimeout(w.k.ctx, requestTimeout)
	defer cancel()
	now := int64(0)
	err := w.k.client.CoreV1().Pods(w.namespace).Delete(ctx, w.name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &w.uid},
	})
	return err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}
