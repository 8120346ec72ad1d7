package kubelet

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 5 * time.Second
	// configRetry is how soon a container looks again for what its configuration lacks.
	configRetry = 500 * time.Millisecond
)

// container is a container of a Pod over all its restarts. Its podWorker's mutex guards what changes.
type container struct {
	spec corev1.Container

	state, last corev1.ContainerState
	restarts    int32
	running     *execution
}

func (c *container) succeeded() bool {
	return c.state.Terminated != nil && c.state.Terminated.ExitCode == 0
}

// sidecar tells whether it is an init container that runs as long as the others do.
func (c *container) sidecar() bool {
	return c.spec.RestartPolicy != nil && *c.spec.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// backoff waits longer each time.
type backoff struct{ next time.Duration }

func (b *backoff) take() time.Duration {
	delay := max(b.next, firstBackoff)
	b.next = min(2*delay, lastBackoff)
	return delay
}

// runContainer runs a container until the Pod ends or the restart policy wants no further run, and tells whether its last run
// succeeded.
func (w *podWorker) runContainer(c *container, policy corev1.RestartPolicy) bool {
	var delays backoff
	for {
		begin := time.Now()
		if !w.runOnce(c) {
			return false
		}
		ok := c.succeeded()
		last := policy == corev1.RestartPolicyNever || (ok && policy == corev1.RestartPolicyOnFailure)
		if last || w.ending.Err() != nil || w.current().DeletionTimestamp != nil {
			return ok
		}
		if time.Since(begin) > 2*lastBackoff {
			delays = backoff{}
		}
		delay := delays.take()
		w.update(func() {
			c.last, c.restarts = c.state, c.restarts+1
			message := fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", delay, c.spec.Name, w.name)
			c.state = waiting("CrashLoopBackOff", message)
		})
		if !w.sleep(delay) {
			w.update(func() { c.state, c.restarts = c.last, c.restarts-1 })
			return c.succeeded()
		}
	}
}

// runOnce runs a container once. False means that the Pod ended before it could start.
func (w *podWorker) runOnce(c *container) bool {
	image, ok := w.pull(c)
	if !ok {
		return false
	}
	dir := filepath.Join(w.dir, "containers", c.spec.Name)
	message := filepath.Join(dir, "termination-log")
	var env environment
	var mounts mounts
	for {
		err := os.MkdirAll(filepath.Join(dir, "root"), 0o755)
		if err == nil {
			err = os.WriteFile(message, nil, 0o644)
		}
		if err == nil {
			env, err = w.k.environment(w.ending, w.current(), &c.spec, image)
		}
		if err == nil {
			mounts, err = w.mounts(&c.spec, env, message)
		}
		if err == nil {
			break
		}
		w.update(func() { c.state = waiting("CreateContainerConfigError", err.Error()) })
		if !w.sleep(configRetry) {
			return false
		}
	}
	if w.k.powered.wait(w.ending) != nil {
		return false
	}
	w.execute(c, image, env, mounts, message)
	return true
}

// pull finds the container's image, however long that takes.
func (w *podWorker) pull(c *container) (Image, bool) {
	var delays backoff
	for reason := "ErrImagePull"; ; reason = "ImagePullBackOff" {
		image, err := w.k.images.find(c.spec.Image)
		if err == nil {
			return image, w.ending.Err() == nil
		}
		text := err.Error()
		if reason == "ImagePullBackOff" {
			text = fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", c.spec.Image, text)
		}
		w.update(func() { c.state = waiting(reason, text) })
		if !w.sleep(delays.take()) {
			return Image{}, false
		}
	}
}

// execute runs the container's program to its end and notes how that was.
func (w *podWorker) execute(c *container, image Image, env environment, mounts mounts, message string) {
	start := metav1.Now()
	log, offset, err := w.openLog(c.spec.Name)
	var e *execution
	if err == nil {
		var p program
		if p, err = image.program(&c.spec, env, mounts); err == nil {
			e, err = w.k.execute(p, env, mounts, w.workingDir(&c.spec, mounts), log)
		} else {
			log.Close()
		}
	}
	if err != nil {
		w.update(func() {
			c.state = terminated(codeNotStarted, "StartError", err.Error(), start)
		})
		return
	}
	w.update(func() {
		c.running = e
		c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: start}}
	})
	if !w.k.powered.on() { // CrashNode may have looked a moment too early
		e.kill()
	}
	code := e.wait(w.ending, w.killing)
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	text := terminationMessage(message)
	if text == "" && code != 0 && c.spec.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError {
		text = endOfLog(w.k.LogPath(w.namespace, w.name, c.spec.Name), offset)
	}
	w.update(func() {
		c.running = nil
		c.state = terminated(code, reason, text, start)
	})
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func terminated(code int, reason, message string, start metav1.Time) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: int32(code), Reason: reason, Message: message, //nolint:gosec // of a process: 0 to 255
		StartedAt: start, FinishedAt: metav1.Now(),
	}}
}

func (w *podWorker) workingDir(c *corev1.Container, mounts mounts) string {
	dir := filepath.Join(w.dir, "containers", c.Name, "root")
	if c.WorkingDir != "" {
		if mapped := mounts.path(c.WorkingDir); mapped != c.WorkingDir {
			return mapped
		}
	}
	return dir
}

// mounts says where a container's paths lie.
func (w *podWorker) mounts(c *corev1.Container, env environment, message string) (mounts, error) {
	all := []mount{{inside: c.TerminationMessagePath, host: message}}
	if c.TerminationMessagePath == "" {
		all[0].inside = corev1.TerminationMessagePathDefault
	}
	for _, m := range c.VolumeMounts {
		host := filepath.Join(w.dir, "volumes", m.Name)
		sub := m.SubPath
		if m.SubPathExpr != "" {
			sub = env.expand(m.SubPathExpr)
		}
		if sub != "" {
			if !filepath.IsLocal(sub) {
				return nil, fmt.Errorf("subPath %q of volume %q must stay in the volume", sub, m.Name)
			}
			host = filepath.Join(host, sub)
			if _, err := os.Stat(host); os.IsNotExist(err) {
				if err := os.MkdirAll(host, 0o755); err != nil {
					return nil, err
				}
			}
		}
		all = append(all, mount{inside: m.MountPath, host: host})
	}
	return newMounts(all...), nil
}

// LogPath returns the file with all that a container printed, over all its restarts.
func (k *Kubelet) LogPath(namespace, pod, container string) string {
	return filepath.Join(k.logs, namespace+"_"+pod+"_"+container+".log")
}

func (w *podWorker) openLog(container string) (*os.File, int64, error) {
	log, err := os.OpenFile(w.k.LogPath(w.namespace, w.name, container), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, 0, err
	}
	// No arguments: they may hold a Secret's value.
	fmt.Fprintf(log, "=== %s container %s starts\n", time.Now().Format(time.RFC3339), container)
	offset, err := log.Seek(0, io.SeekEnd)
	return log, offset, err
}

func terminationMessage(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxMessage))
	if err != nil {
		return ""
	}
	return string(content)
}

func endOfLog(path string, offset int64) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil {
		offset = max(offset, info.Size()-maxMessageOfLogs)
	}
	content, err := io.ReadAll(io.NewSectionReader(file, offset, maxMessageOfLogs))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(content), "")
}

// sleep returns false when the Pod is to end before the time is up.
func (w *podWorker) sleep(d time.Duration) bool {
	ctx, cancel := context.WithTimeout(w.ending, d)
	defer cancel()
	<-ctx.Done()
	return w.ending.Err() == nil
}
