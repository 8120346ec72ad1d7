package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/test/env"
)

const (
	standInWorkers = 8
	// defaultLocation is what Velero writes into a Backup that names none.
	defaultLocation = "default"
)

// standIn is Velero as fast as can be: every Backup is Completed as soon as it is seen, and deleted as soon as that is requested.
type standIn struct {
	client client.WithWatch

	mutex     sync.Mutex
	created   map[types.NamespacedName]time.Time // by origin: the Backup was seen
	completed map[types.NamespacedName]time.Time // by origin: its completion was about to be written
	failed    error
	// held is closed when Backups are completed again; nil if they are.
	held chan struct{}
}

func startStandIn(ctx context.Context, c client.WithWatch) (*standIn, error) {
	s := &standIn{
		client: c, created: map[types.NamespacedName]time.Time{}, completed: map[types.NamespacedName]time.Time{},
	}
	backups, err := watchAll(ctx, c, &velerov1.BackupList{}, client.InNamespace(env.OADPNamespace))
	if err != nil {
		return nil, fmt.Errorf("watch Velero Backups: %w", err)
	}
	requests, err := watchAll(ctx, c, &velerov1.DeleteBackupRequestList{}, client.InNamespace(env.OADPNamespace))
	if err != nil {
		return nil, fmt.Errorf("watch DeleteBackupRequests: %w", err)
	}
	serve(backups, func(made *velerov1.Backup) { s.note(s.created, made) }, func(made *velerov1.Backup) { s.complete(ctx, made) })
	serve(requests, func(*velerov1.DeleteBackupRequest) {}, func(request *velerov1.DeleteBackupRequest) { s.remove(ctx, request) })
	return s, nil
}

// serve has some workers handle each object that is created. seen is called for it first, before it waits for one of them.
func serve[T client.Object](watched watch.Interface, seen, handle func(T)) {
	fresh := make(chan T, 4096)
	for range standInWorkers {
		go func() {
			for object := range fresh {
				handle(object)
			}
		}()
	}
	go func() {
		defer close(fresh)
		for event := range watched.ResultChan() {
			if object, ok := event.Object.(T); ok && event.Type == watch.Added {
				seen(object)
				fresh <- object
			}
		}
	}()
}

func (s *standIn) note(times map[types.NamespacedName]time.Time, backup *velerov1.Backup) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	times[originOf(backup)] = time.Now()
}

// times returns when a backup's Velero Backup was seen, and when its completion was about to be written.
func (s *standIn) times(origin types.NamespacedName) (created, completed time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.created[origin], s.completed[origin]
}

func (s *standIn) failure() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.failed
}

// hold has no Backup completed until release is called. At most as many are made meanwhile as wait to be served.
func (s *standIn) hold() (release func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	held := make(chan struct{})
	s.held = held
	return sync.OnceFunc(func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.held = nil
		close(held)
	})
}

func (s *standIn) awaitRelease(ctx context.Context) {
	s.mutex.Lock()
	held := s.held
	s.mutex.Unlock()
	if held == nil {
		return
	}
	select {
	case <-held:
	case <-ctx.Done():
	}
}

func (s *standIn) complete(ctx context.Context, backup *velerov1.Backup) {
	s.awaitRelease(ctx)
	now := metav1.Now()
	patch, err := json.Marshal(map[string]any{
		"spec": map[string]string{"storageLocation": defaultLocation},
		"status": velerov1.BackupStatus{
			Version: 1, FormatVersion: "1.1.0", Phase: velerov1.BackupPhaseCompleted,
			StartTimestamp: &now, CompletionTimestamp: &now,
			Progress: &velerov1.BackupProgress{TotalItems: 10, ItemsBackedUp: 10},
		},
	})
	if err == nil {
		s.note(s.completed, backup)
		err = s.client.Patch(ctx, backup, client.RawPatch(types.MergePatchType, patch))
	}
	if err != nil {
		s.fail(ctx, fmt.Errorf("complete Velero Backup %s: %w", backup.Name, err))
	}
}

// remove deletes a Backup, and the request to do so.
func (s *standIn) remove(ctx context.Context, request *velerov1.DeleteBackupRequest) {
	backup := &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Spec.BackupName}}
	for _, object := range []client.Object{backup, request} {
		if err := client.IgnoreNotFound(s.client.Delete(ctx, object)); err != nil {
			s.fail(ctx, fmt.Errorf("delete for DeleteBackupRequest %s: %w", request.Name, err))
		}
	}
}

func (s *standIn) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.failed = err
}
