package kubelet

import (
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// mountAll lays out the Pod's volumes, and waits for the ConfigMaps and Secrets that are not there yet. False means that the
// Pod ended before that.
func (w *podWorker) mountAll() bool {
	said := ""
	for {
		err := w.mountOnce()
		if err == nil {
			w.update(func() { w.mounted = true })
			return w.ending.Err() == nil
		}
		if said != err.Error() && w.ending.Err() == nil {
			said = err.Error()
			w.k.event(w.current(), "FailedMount", said)
		}
		select {
		case <-w.ending.Done():
			return false
		case <-w.stale:
		case <-time.After(configRetry):
		}
	}
}

func (w *podWorker) mountOnce() error {
	for _, volume := range w.current().Spec.Volumes {
		if err := w.k.layOut(w.ending, w.namespace, &volume, filepath.Join(w.dir, "volumes", volume.Name)); err != nil {
			return err
		}
	}
	return nil
}

// shows tells whether a volume of the Pod holds the ConfigMap or Secret.
func (w *podWorker) shows(kind, namespace, name string) bool {
	if namespace != w.namespace {
		return false
	}
	return slices.ContainsFunc(w.current().Spec.Volumes, func(volume corev1.Volume) bool {
		from, _ := sources(&volume)
		return slices.ContainsFunc(from, func(s source) bool { return s.kind == kind && s.name == name })
	})
}

// renew has the volumes laid out again, now or when the API server answers.
func (w *podWorker) renew() { notify(w.stale) }

// renewLoop keeps the volumes of a Pod that has begun as the ConfigMaps and Secrets are.
func (w *podWorker) renewLoop() {
	for {
		select {
		case <-w.ending.Done():
			return
		case <-time.After(configRetry):
		}
		w.mu.Lock()
		mounted := w.mounted
		w.mu.Unlock()
		if !mounted {
			continue
		}
		select {
		case <-w.ending.Done():
			return
		case <-w.stale:
			_ = w.mountOnce() // what is gone or not to be had stays as it was
		}
	}
}
