package env

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

	env      *Env
	temporal temporalclient.Client
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
	temporal, err := temporalclient.Dial(temporalclient.Options{HostPort: e.TemporalAddress(), Logger: silent{}})
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	defer temporal.Close()
	s := newSearch(texts...)
	s.env, s.temporal = e, temporal
	for _, look := range []func(context.Context) error{s.histories, s.files, s.objects, s.metrics, s.arguments} {
		if err := look(ctx); err != nil {
			return nil, err
		}
	}
	return s.found, nil
}

// page lists workflows. On a busy machine that may take longer than the client gives a call.
func (s *search) page(
	ctx context.Context, request *workflowservice.ListWorkflowExecutionsRequest,
) (page *workflowservice.ListWorkflowExecutionsResponse, err error) {
	for range 5 {
		page, err = s.temporal.ListWorkflow(ctx, request)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return page, err
}

func (s *search) histories(ctx context.Context) error {
	request := &workflowservice.ListWorkflowExecutionsRequest{}
	for {
		page, err := s.page(ctx, request)
		if err != nil {
			return fmt.Errorf("list workflows: %w", err)
		}
		for _, found := range page.Executions {
			id, run := found.Execution.WorkflowId, found.Execution.RunId
			events := s.temporal.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
			for events.HasNext() {
				event, err := events.Next()
				if err != nil {
					return fmt.Errorf("read the history of %s: %w", id, err)
				}
				content, err := proto.Marshal(event) // payloads stand in it as they are
				if err != nil {
					return err
				}
				s.look("history "+id, content)
			}
		}
		if request.NextPageToken = page.NextPageToken; len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

func (s *search) files(context.Context) error {
	for kind, pattern := range map[string]string{
		"log": filepath.Join(s.env.LogDir(), "*.log"), "log of pod": filepath.Join(s.env.LogDir(), "pods", "*"),
		"database": filepath.Join(s.env.Dir(), "data", "temporal.db*"),
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
	for kind, name := range map[string]schema.GroupVersionKind{
		"Event":              {Group: "events.k8s.io", Version: "v1", Kind: "Event"},
		"Deployment":         {Group: "apps", Version: "v1", Kind: "Deployment"},
		"Pod":                {Version: "v1", Kind: "Pod"},
		"location":           {Group: tenantAPIGroup, Version: "v1alpha1", Kind: "NonAdminBackupStorageLocation"},
		"approval request":   {Group: tenantAPIGroup, Version: "v1alpha1", Kind: "NonAdminBackupStorageLocationApprovalRequest"},
		"backup":             {Group: tenantAPIGroup, Version: "v1alpha1", Kind: "NonAdminBackup"},
		"restore":            {Group: tenantAPIGroup, Version: "v1alpha1", Kind: "NonAdminRestore"},
		"Velero location":    {Group: "velero.io", Version: "v1", Kind: "BackupStorageLocation"},
		"FoundationDBBackup": {Group: "fdb.holdfast.dev", Version: "v1alpha1", Kind: "FoundationDBBackup"},
	} {
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
		page, err := readPage(ctx, "http://"+s.env.Component(name).Address(AddressMetrics)+"/metrics")
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

func readPage(ctx context.Context, address string) ([]byte, error) {
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

// silent keeps the SDK's log out of the tests' output.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
