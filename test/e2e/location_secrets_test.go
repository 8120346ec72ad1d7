package e2e_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
)

// secrets are all secret keys that tests have put into tenants' Secrets, and the signatures of the URLs that they were given.
var secrets = struct {
	sync.Mutex
	kept map[string]bool
}{kept: map[string]bool{}}

func keepSecret(secret string) {
	secrets.Lock()
	defer secrets.Unlock()
	secrets.kept[secret] = true
}

func keptSecrets() []string {
	secrets.Lock()
	defer secrets.Unlock()
	return slices.Sorted(maps.Keys(secrets.kept))
}

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

// searchEverywhere looks for the texts in every payload of every history, in Temporal's database, in all logs, Events, objects that
// tenants or operators read, on the pages of metrics, and in the arguments of every process.
func searchEverywhere(ctx context.Context, texts ...string) (map[string]int, error) {
	s := newSearch(texts...)
	for _, look := range []func(context.Context) error{s.histories, s.files, s.objects, s.metrics, s.arguments} {
		if err := look(ctx); err != nil {
			return nil, err
		}
	}
	return s.found, nil
}

func (s *search) histories(ctx context.Context) error {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("HoldfastKind IN ('%s', '%s', '%s', '%s', '%s')",
		contract.KubernetesKindLocation, contract.KubernetesKindApproval, contract.KubernetesKindBackup,
		contract.KubernetesKindRestore, contract.KubernetesKindDownload)}
	for {
		page, err := temporal.ListWorkflow(ctx, request)
		if err != nil {
			return fmt.Errorf("list workflows: %w", err)
		}
		for _, found := range page.Executions {
			id, run := found.Execution.WorkflowId, found.Execution.RunId
			events := temporal.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
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
		"log": filepath.Join(stack.LogDir(), "*"), "database": filepath.Join(stack.Dir(), "data", "temporal.db*"),
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
	for kind, list := range map[string]client.ObjectList{
		"Event":            &eventsv1.EventList{},
		"location":         &oadpv1alpha1.NonAdminBackupStorageLocationList{},
		"approval request": &oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestList{},
		"backup":           &oadpv1alpha1.NonAdminBackupList{},
		"restore":          &oadpv1alpha1.NonAdminRestoreList{},
		"Velero location":  &velerov1.BackupStorageLocationList{},
	} {
		if err := admin.List(ctx, list); err != nil {
			return err
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
	for _, name := range []string{env.Worker, env.Watcher} {
		page, err := get(ctx, "http://"+stack.Component(name).Address(env.AddressMetrics)+"/metrics")
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

func get(ctx context.Context, address string) ([]byte, error) {
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

// secretsShown lists the places that show a secret of the tests that have run.
func secretsShown(ctx context.Context) ([]string, error) {
	kept := keptSecrets()
	if len(kept) == 0 {
		return nil, nil
	}
	found, err := searchEverywhere(ctx, kept...)
	if err != nil {
		return nil, fmt.Errorf("search for secrets: %w", err)
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// checkSecrets: nothing of what tenants' Secrets hold is anywhere but in Secrets. It returns the exit status.
func checkSecrets(ctx context.Context) int {
	shown, err := secretsShown(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, place := range shown {
		fmt.Fprintln(os.Stderr, "a secret is shown by:", place)
	}
	return min(len(shown), 1)
}

// requireNoSecretShown is checkSecrets for one test: a later one may remove what it looks at.
func requireNoSecretShown(t *testing.T) {
	t.Helper()
	require.NotEmpty(t, keptSecrets())
	shown, err := secretsShown(t.Context())
	require.NoError(t, err)
	require.Empty(t, shown)
}

// The search itself: it finds in each place what is there, and a text in every form.
func TestTheSearchForSecretsFindsWhatIsThere(t *testing.T) {
	t.Parallel()
	x := newTenant(t, "alice")
	location := x.own(newAccount(t))
	x.awaitAvailable(location)
	x.awaitLocationEvent(location, "LocationAvailable", "")
	x.remove(location)
	found, err := searchEverywhere(t.Context(), x.namespace, "holdfast_signal_seconds", "holdfast_backups_total", "holdfast-worker")
	require.NoError(t, err)
	for _, place := range []string{
		"history " + contract.WorkflowID(stack.ClusterID(), contract.KindLocation, locationRef(location)),
		"Event", "metrics worker", "metrics watcher", "log worker.log", "log velero.log",
	} {
		assert.Positive(t, found[place], place)
	}
	assert.Positive(t, found["database temporal.db"]+found["database temporal.db-wal"])
	if runtime.GOOS == "linux" {
		assert.Positive(t, found[fmt.Sprintf("arguments of process %d", stack.Component(env.Worker).PID())])
	}

	const secret = "a1b2c3d4e5f60718"
	for _, hidden := range []string{
		secret, `{"key":"` + secret + `"}`,
		base64.StdEncoding.EncodeToString([]byte(secret)),
		base64.StdEncoding.EncodeToString([]byte("x" + secret + "y")),
		base64.StdEncoding.EncodeToString([]byte("xx" + secret + "yy")),
		base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 40) + secret + "\n")),
		base64.RawURLEncoding.EncodeToString([]byte("xx" + secret)),
	} {
		s := newSearch("0123456789abcdef", secret, "fedcba9876543210")
		s.look("here", []byte(hidden))
		assert.Equal(t, map[string]int{"here": 1}, s.found, hidden)
		s = newSearch("0123456789abcdef", "fedcba9876543210")
		s.look("here", []byte(hidden))
		assert.Empty(t, s.found, hidden)
	}
}
