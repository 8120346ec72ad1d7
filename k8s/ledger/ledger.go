package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
)

const (
	// ConfigMapName is the name of the ledger; further parts, when one is full, are named holdfast-released-2 and so on.
	ConfigMapName = "holdfast-released"
	// Label is on every part; a ConfigMap without it is not a part.
	Label = "holdfast.dev/released"
	// partBytes limits a part to far less than the API server accepts, because several may write at a time.
	partBytes = 512 << 10
)

// Why a NonAdminBackup was removed without its data.
const (
	ByForce      = "forceDeleteBackup"
	ByNamespace  = "namespace deleted"
	ByRemoval    = "deleted while its Velero Backup was away"
	WithLocation = "storage location deleted"
	Unnoticed    = "finalizer removed by hand"
)

// Entry says what was released. An entry that an administrator wrote may hold anything; its fields are then empty.
type Entry struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Location is the Velero BackupStorageLocation that holds the data.
	Location string    `json:"location,omitempty"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"`
}

// Ledger reads and writes the entries. Client must read from the API server itself.
type Ledger struct {
	Client        client.Client
	OADPNamespace string
}

// Read returns all entries by NACUUID.
func (l *Ledger) Read(ctx context.Context) (map[string]Entry, error) {
	parts, err := l.parts(ctx)
	if err != nil {
		return nil, err
	}
	entries := map[string]Entry{}
	for i := range parts {
		for nacuuid, text := range parts[i].Data {
			var entry Entry
			if json.Unmarshal([]byte(text), &entry) != nil {
				entry = Entry{}
			}
			entries[nacuuid] = entry
		}
	}
	return entries, nil
}

// Add enters a NACUUID whose Velero Backup was proven to be the object's. An existing entry stays as it is, so Add may be
// repeated. Several may add at a time: each entry is written without touching the others.
func (l *Ledger) Add(ctx context.Context, nacuuid string, entry Entry) error {
	text, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("write entry %s of ConfigMap %s: %w", nacuuid, ConfigMapName, err)
	}
	parts, err := l.parts(ctx)
	if err != nil {
		return err
	}
	taken, into := map[string]bool{}, ""
	for i := range parts {
		if _, found := parts[i].Data[nacuuid]; found {
			return nil
		}
		taken[parts[i].Name] = true
		if into == "" && size(&parts[i]) < partBytes {
			into = parts[i].Name
		}
	}
	if into == "" {
		into = free(taken)
		err := l.create(ctx, into, nacuuid, string(text))
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return l.patch(ctx, into, map[string]any{
		"metadata": map[string]any{"labels": map[string]string{Label: "true"}},
		"data":     map[string]string{nacuuid: string(text)},
	})
}

func (l *Ledger) create(ctx context.Context, name, nacuuid, text string) error {
	part := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.OADPNamespace, Name: name, Labels: map[string]string{Label: "true"}},
		Data:       map[string]string{nacuuid: text},
	}
	if err := l.Client.Create(ctx, part); err != nil {
		return fmt.Errorf("create ConfigMap %s/%s: %w", l.OADPNamespace, name, err)
	}
	return nil
}

func (l *Ledger) patch(ctx context.Context, name string, merge map[string]any) error {
	data, err := json.Marshal(merge)
	if err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", name, err)
	}
	part := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.OADPNamespace, Name: name}}
	if err := l.Client.Patch(ctx, part, client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("patch ConfigMap %s/%s: %w", l.OADPNamespace, name, err)
	}
	return nil
}

// Remove removes entries. If their part has changed meanwhile, they stay until the next call. It returns how many were removed.
func (l *Ledger) Remove(ctx context.Context, nacuuids map[string]bool) (int, error) {
	parts, err := l.parts(ctx)
	if err != nil {
		return 0, err
	}
	removed := 0
	for i := range parts {
		part := &parts[i]
		before, count := part.DeepCopy(), 0
		for nacuuid := range before.Data {
			if nacuuids[nacuuid] {
				delete(part.Data, nacuuid)
				count++
			}
		}
		if count == 0 {
			continue
		}
		err := l.Client.Patch(ctx, part, k8s.BoundPatch(before))
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return removed, fmt.Errorf("patch ConfigMap %s/%s: %w", part.Namespace, part.Name, err)
		}
		removed += count
	}
	return removed, nil
}

func (l *Ledger) parts(ctx context.Context) ([]corev1.ConfigMap, error) {
	var list corev1.ConfigMapList
	if err := l.Client.List(ctx, &list, client.InNamespace(l.OADPNamespace), client.HasLabels{Label}); err != nil {
		return nil, fmt.Errorf("list the ConfigMaps %s: %w", ConfigMapName, err)
	}
	var parts []corev1.ConfigMap
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, ConfigMapName) {
			parts = append(parts, list.Items[i])
		}
	}
	return parts, nil
}

func size(part *corev1.ConfigMap) int {
	bytes := 0
	for key, text := range part.Data {
		bytes += len(key) + len(text)
	}
	return bytes
}

func free(taken map[string]bool) string {
	name := ConfigMapName
	for number := 2; taken[name]; number++ {
		name = fmt.Sprintf("%s-%d", ConfigMapName, number)
	}
	return name
}
