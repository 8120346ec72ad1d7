package env

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	_ "modernc.org/sqlite" // Temporal's own driver for its database
)

// disguises are the forms of a text in which it is looked for: itself, and what stays the same of its base64 form at each of the
// three offsets that it can have in something larger.
func disguises(text string) []string {
	forms := []string{text}
	for offset := range 3 {
		padded := append(make([]byte, offset), text...)
		whole := padded[:len(padded)-len(padded)%3] // the last group depends on what follows
		first := (offset + 2) / 3 * 4               // and the first on what comes before
		forms = append(forms, base64.StdEncoding.EncodeToString(whole)[first:])
	}
	return forms
}

// search says where texts, of at least 12 bytes, occur in what people can read: the places, never the text.
type search struct {
	begins [1 << 16]bool       // by two bytes: most places in a text begin none of the forms
	forms  map[uint64][]string // by their first eight bytes
	found  map[string]int
	env    *Env
}

func newSearch(texts ...string) *search {
	s := &search{forms: map[uint64][]string{}, found: map[string]int{}}
	for _, text := range texts {
		for _, form := range disguises(text) {
			head := binary.LittleEndian.Uint64([]byte(form))
			s.begins[uint16(head)] = true
			s.forms[head] = append(s.forms[head], form)
		}
	}
	return s
}

func (s *search) look(place string, content []byte) {
	for i := range max(0, len(content)-7) {
		head := binary.LittleEndian.Uint64(content[i:])
		if !s.begins[uint16(head)] {
			continue
		}
		for _, form := range s.forms[head] {
			if bytes.HasPrefix(content[i:], []byte(form)) {
				s.found[place]++
			}
		}
	}
}

// Search looks for texts, of at least 12 bytes each, in every payload of every history, in Temporal's database, in all logs,
// Events, objects that tenants or operators read, on the pages of metrics, and in the arguments of every process. It returns
// the places, and how often each shows one of them: never the text.
func (e *Env) Search(ctx context.Context, texts ...string) (map[string]int, error) {
	s := newSearch(texts...)
	s.env = e
	for _, look := range []func(context.Context) error{s.histories, s.files, s.objects, s.metrics, s.arguments} {
		if err := look(ctx); err != nil {
			return nil, err
		}
	}
	return s.found, nil
}

// histories reads them where Temporal keeps them: thousands of runs, one call each, take minutes on a busy machine. What the
// database has in rows, its file has in pages, which part a text.
func (s *search) histories(ctx context.Context) error {
	db, err := sql.Open("sqlite", "file:"+s.env.temporalDB()+"?mode=ro&_pragma=busy_timeout(30000)")
	if err != nil {
		return fmt.Errorf("open Temporal's database: %w", err)
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT coalesce(e.workflow_id, 'of run ' || hex(n.tree_id)), n.data
		FROM history_node n LEFT JOIN executions e ON e.run_id = n.tree_id`)
	if err != nil {
		return fmt.Errorf("read Temporal's histories: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var events sql.RawBytes // payloads stand in it as they are
		if err := rows.Scan(&id, &events); err != nil {
			return fmt.Errorf("read Temporal's histories: %w", err)
		}
		s.look("history "+id, events)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read Temporal's histories: %w", err)
	}
	return nil
}

func (s *search) files(context.Context) error {
	for kind, pattern := range map[string]string{
		"log": filepath.Join(s.env.LogDir(), "*.log"), "log of pod": filepath.Join(s.env.LogDir(), "pods", "*"),
		"database": s.env.temporalDB() + "*",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			s.look(kind+" "+filepath.Base(file), content)
		}
	}
	return nil
}

// objects leaves out Secrets, and the requests whose status is the place of a signed URL.
func (s *search) objects(ctx context.Context) error {
	kinds := map[string]schema.GroupVersionKind{
		"Event":            {Group: "events.k8s.io", Version: "v1", Kind: "Event"},
		"Deployment":       {Group: "apps", Version: "v1", Kind: "Deployment"},
		"Pod":              {Version: "v1", Kind: "Pod"},
		"location":         {Group: tenantAPIGroup, Version: "v1alpha1", Kind: "NonAdminBackupStorageLocation"},
		"approval request": {Group: tenantAPIGroup, Version: "v1alpha1", Kind: "NonAdminBackupStorageLocationApprovalRequest"},
		"backup":           {Group: tenantAPIGroup, Version: "v1alpha1", Kind: "NonAdminBackup"},
		"restore":          {Group: tenantAPIGroup, Version: "v1alpha1", Kind: "NonAdminRestore"},
		"Velero location":  {Group: "velero.io", Version: "v1", Kind: "BackupStorageLocation"},
	}
	if s.env.options.FoundationDB {
		for _, kind := range []string{"FoundationDBBackup", "FoundationDBRestore", "FoundationDBDrill"} {
			kinds[kind] = schema.GroupVersionKind{Group: fdbAPIGroup, Version: "v1alpha1", Kind: kind}
		}
	}
	for kind, name := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(name)
		if err := s.env.client.List(ctx, list); err != nil {
			return fmt.Errorf("list %s: %w", name.Kind, err)
		}
		content, err := json.Marshal(list)
		if err != nil {
			return err
		}
		s.look(kind, content)
	}
	return nil
}

func (s *search) metrics(ctx context.Context) error {
	for _, name := range []string{Worker, Watcher} {
		page, err := ReadPage(ctx, "http://"+s.env.Component(name).Address(AddressMetrics)+"/metrics")
		if err != nil {
			return err
		}
		s.look("metrics "+name, page)
	}
	return nil
}

// arguments needs /proc: elsewhere it finds nothing.
func (s *search) arguments(context.Context) error {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil { // else the process has ended
			s.look("arguments of process "+filepath.Base(filepath.Dir(file)), content)
		}
	}
	return nil
}

// ReadPage returns what a component serves at an address.
func ReadPage(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var content bytes.Buffer
	_, err = content.ReadFrom(answer.Body)
	return content.Bytes(), err
}
