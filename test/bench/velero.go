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

const standInWorkers = 8

// standIn is Velero as fast as can be: every Backup is Completed as soon as it is seen.
type standIn struct {
	client client.WithWatch

	mutex     sync.Mutex
	created   map[types.NamespacedName]time.Time // by origin: the Backup was seen
	completed map[types.NamespacedName]time.Time // by origin: its completion was about to be written
	failed    error
}

func startStandIn(ctx context.Context, c client.WithWatch) (*standIn, error) {
	s := &standIn{
		client: c, created: map[types.NamespacedName]time.Time{}, completed: map[types.NamespacedName]time.Time{},
	}
	watched, err := watchAll(ctx, c, &velerov1.BackupList{}, client.InNamespace(env.OADPNamespace))
	if err != nil {
		return nil, fmt.Errorf("watch Velero Backups: %w", err)
	}
	fresh := make(chan *velerov1.Backup, 4096)
	for range standInWorkers {
		go func() {
			for backup := range fresh {
				s.complete(ctx, backup)
			}
		}()
	}
	go func() {
		defer close(fresh)
		for event := range watched.ResultChan() {
			if backup, ok := event.Object.(*velerov1.Backup); ok && event.Type == watch.Added {
				s.note(s.created, backup)
				fresh <- backup
			}
		}
	}()
	return s, nil
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

func (s *standIn) complete(ctx context.Context, backup *velerov1.Backup) {
	now := metav1.Now()
	patch, err := json.Marshal(map[string]any{"status": velerov1.BackupStatus{
		Version: 1, FormatVersion: "1.1.0", Phase: velerov1.BackupPhaseCompleted,
		StartTimestamp: &now, CompletionTimestamp: &now,
		Progress: &velerov1.BackupProgress{TotalItems: 10, ItemsBackedUp: 10},
	}})
	if err == nil {
		s.note(s.completed, backup)
		err = s.client.Patch(ctx, backup, client.RawPatch(types.MergePatchType, patch))
	}
	if err != nil && ctx.Err() == nil {
		s.mutex.Lock()
		s.failed = fmt.Errorf("complete Velero Backup %s: %w", backup.Name, err)
		s.mutex.Unlock()
	}
}
