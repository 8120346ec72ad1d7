package operations_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/proxy"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/codec"
	"holdfast.dev/holdfast/workflows/contract"
)

// keyFolder is a folder of payload keys.
type keyFolder struct {
	t   *testing.T
	dir string
}

func newKeyFolder(t *testing.T, current string, ids ...string) *keyFolder {
	t.Helper()
	k := &keyFolder{t: t, dir: t.TempDir()}
	for _, id := range ids {
		k.add(id)
	}
	k.write("current", current)
	return k
}

func (k *keyFolder) write(name, content string) {
	k.t.Helper()
	require.NoError(k.t, os.WriteFile(filepath.Join(k.dir, name), []byte(content), 0o600))
}

// add writes the key of that ID, which is the same in every folder.
func (k *keyFolder) add(id string) {
	k.t.Helper()
	seed := id[len(id)-1]
	k.write(id, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0x80 | seed, seed}, 16)))
}

func (k *keyFolder) variable() string { return "HOLDFAST_PAYLOAD_KEYS_DIR=" + k.dir }

// options are those of a client with the folder's keys.
func (k *keyFolder) options() temporalclient.Options {
	k.t.Helper()
	keys, err := codec.Open(k.dir)
	require.NoError(k.t, err)
	return temporalclient.Options{DataConverter: codec.DataConverter(keys), FailureConverter: codec.FailureConverter(keys)}
}

const unusablePolicy = "no-such-field: true"

// setPolicy writes the administrator's policy; "" removes it.
func setPolicy(t *testing.T, policy string) {
	t.Helper()
	document := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: "holdfast-policy"},
		Data:       map[string]string{"nonAdmin": policy},
	}
	require.NoError(t, client.IgnoreNotFound(admin.Delete(context.Background(), document.DeepCopy())))
	if policy != "" {
		require.NoError(t, admin.Create(context.Background(), document))
	}
}

// A backup's whole life, a failure and a change of keys in it, leaves nothing readable in Temporal but IDs and search
// attributes.
func TestNothingIsReadableInTemporal(t *testing.T) {
	folder := newKeyFolder(t, "key-1", "key-1")
	s := newScene(t, "sealed", folder.options())
	setPolicy(t, unusablePolicy) // the first step fails until this is mended
	t.Cleanup(func() { setPolicy(t, "") })
	startWorker(t, s.cluster, folder.variable())
	startWatcher(t, s.cluster, folder.variable())
	nab := s.backUp("ledger")
	failure := s.awaitFailure(nab)
	assert.Equal(t, "Encoded failure", failure.Message)
	readable := codec.FailureConverter(openKeys(t, folder)).FailureToError(proto.Clone(failure).(*failurepb.Failure))
	require.ErrorContains(t, readable, "no-such-field", "who has the keys reads the reason")

	setPolicy(t, "{}")
	velero := s.awaitVelero(nab)
	s.awaitDescribed(nab, "waits for Velero to start Velero Backup", folder.variable())
	s.awaitDescribed(nab, `payload encrypted with key "key-1": no key can be read without --payload-keys-dir`)

	folder.add("key-2")
	folder.write("current", "key-2")
	late := newScene(t, "client", folder.options()) // has read the new keys; the worker gets to know them by this signal
	late.cluster, late.namespace = s.cluster, s.namespace
	late.signal(nab)
	s.awaitHistory(nab, "the worker encrypts with the new key", func(events []*historypb.HistoryEvent) bool {
		return keysOf(t, events)["key-2"] > 1
	})

	s.complete(velero)
	described := s.awaitCompleted(nab)
	keys := s.keysOf(nab)
	assert.Positive(t, keys["key-1"])
	assert.Zero(t, keys[""], "payloads in clear")
	s.assertUnreadable(nab, described)
	heartbeat := s.memoOfHeartbeat()
	assert.NotContains(t, string(heartbeat.Data), "version")
	assert.Equal(t, codec.Encoding, string(heartbeat.Metadata[converter.MetadataEncoding]))
}

// memoOfHeartbeat waits until the cluster's heartbeat is recorded, and returns it as it is stored.
func (s *scene) memoOfHeartbeat() (memo *commonpb.Payload) {
	s.t.Helper()
	eventually.Succeeds(s.t, patience, func() error {
		described, err := s.temporal.DescribeWorkflowExecution(s.t.Context(), contract.HeartbeatID(s.cluster), "")
		if err != nil {
			return err
		}
		if memo = described.WorkflowExecutionInfo.Memo.GetFields()[contract.MemoHeartbeat]; memo == nil {
			return errors.New("no heartbeat is recorded")
		}
		return nil
	})
	return memo
}

// Without its key a workflow stands still, and says why; with the key it goes on.
func TestAWorkflowWaitsForItsKey(t *testing.T) {
	full, partial := newKeyFolder(t, "key-1", "key-1", "key-2"), newKeyFolder(t, "key-2", "key-2")
	s := newScene(t, "keyless", full.options())
	worker := startWorker(t, s.cluster, full.variable()).ready()
	startWatcher(t, s.cluster, full.variable()).ready()
	nab := s.backUp("ledger")
	velero := s.awaitVelero(nab)
	worker.stop()

	worker = startWorker(t, s.cluster, partial.variable()).ready()
	s.complete(velero)
	s.awaitHistory(nab, "the task fails", func(events []*historypb.HistoryEvent) bool {
		return count(events, enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED) > 0
	})
	assert.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, s.describe(nab).WorkflowExecutionInfo.Status)
	assert.Contains(t, worker.output(), `payload encrypted with key \"key-1\": there is no such key in `+partial.dir)

	partial.add("key-1")
	s.awaitCompleted(nab)
}

// A history that began in clear is read after encryption is turned on, and one that began encrypted after it is turned off.
func TestEncryptionIsTurnedOnAndOff(t *testing.T) {
	folder := newKeyFolder(t, "key-1", "key-1")
	s := newScene(t, "mixed", temporalclient.Options{})
	worker, watcher := startWorker(t, s.cluster).ready(), startWatcher(t, s.cluster).ready()
	first := s.backUp("first")
	velero := s.awaitVelero(first)
	restart := func(variables ...string) {
		worker.stop()
		watcher.stop()
		worker, watcher = startWorker(t, s.cluster, variables...).ready(), startWatcher(t, s.cluster, variables...).ready()
	}
	restart(folder.variable())
	s.complete(velero)
	s.awaitCompleted(first)
	keys := s.keysOf(first)
	assert.Positive(t, keys[""])
	assert.Positive(t, keys["key-1"])

	second := s.backUp("second")
	velero = s.awaitVelero(second)
	folder.write("current", "none")
	restart(folder.variable())
	s.complete(velero)
	s.awaitCompleted(second)
	keys = s.keysOf(second)
	assert.Positive(t, keys[""])
	assert.Positive(t, keys["key-1"])
}

func openKeys(t *testing.T, folder *keyFolder) *codec.Keys {
	t.Helper()
	keys, err := codec.Open(folder.dir)
	require.NoError(t, err)
	return keys
}

// awaitFailure waits for an activity that has failed, and returns what Temporal knows of it.
func (s *scene) awaitFailure(nab *oadpv1alpha1.NonAdminBackup) *failurepb.Failure {
	s.t.Helper()
	var failure *failurepb.Failure
	eventually.Succeeds(s.t, patience, func() error {
		described, err := s.description(nab)
		if err != nil {
			return err
		}
		for _, pending := range described.PendingActivities {
			if failure = pending.LastFailure; failure != nil {
				return nil
			}
		}
		return fmt.Errorf("no activity has failed: %v", described.PendingActivities)
	})
	return failure
}

// awaitDescribed runs `holdfast describe` with an environment until it says what is wished: a busy worker may not answer in time.
func (s *scene) awaitDescribed(nab *oadpv1alpha1.NonAdminBackup, want string, variables ...string) {
	s.t.Helper()
	home := s.t.TempDir()
	eventually.Succeeds(s.t, patience, func() error {
		ctx, cancel := context.WithTimeout(s.t.Context(), patience)
		defer cancel()
		command := exec.CommandContext(ctx, binaries[tools.Holdfast], "describe", "backup", nab.Namespace+"/"+nab.Name,
			"--kubeconfig", stack.Kubeconfig(env.Admin), "--cluster-id", s.cluster)
		command.Env = append([]string{"HOME=" + home, "TEMPORAL_ADDRESS=" + stack.TemporalAddress()}, variables...)
		output, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(output), want) {
			return errors.Join(err, fmt.Errorf("want %q: %s", want, output))
		}
		return nil
	})
}

// keysOf counts the payloads of the latest run by the key that encrypts them, "" for those in clear.
func (s *scene) keysOf(nab *oadpv1alpha1.NonAdminBackup) map[string]int {
	s.t.Helper()
	return keysOf(s.t, s.history(nab))
}

func keysOf(t *testing.T, events []*historypb.HistoryEvent) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, event := range events {
		visit(t, event, func(payload *commonpb.Payload) {
			if string(payload.Metadata[converter.MetadataEncoding]) != codec.Encoding {
				counts[""]++
				return
			}
			counts[string(payload.Metadata[codec.MetadataKeyID])]++
		})
	}
	return counts
}

// visit calls look for every payload but those of search attributes.
func visit(t *testing.T, message proto.Message, look func(*commonpb.Payload)) {
	t.Helper()
	err := proxy.VisitPayloads(context.Background(), message, proxy.VisitPayloadsOptions{
		SkipSearchAttributes: true,
		Visitor: func(_ *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
			for _, payload := range payloads {
				look(payload)
			}
			return payloads, nil
		},
	})
	require.NoError(t, err)
}

// assertUnreadable looks for names in everything that Temporal has of a workflow, IDs, search attributes and the fairness key apart.
func (s *scene) assertUnreadable(nab *oadpv1alpha1.NonAdminBackup, described proto.Message) {
	s.t.Helper()
	messages := map[string]proto.Message{"description": described}
	for _, event := range s.history(nab) {
		messages[event.EventType.String()+" "+event.EventTime.AsTime().Format(time.RFC3339Nano)] = event
	}
	ids, attributes := 0, 0
	for what, message := range messages {
		raw, err := proto.Marshal(message)
		require.NoError(s.t, err)
		if bytes.Contains(raw, []byte(nab.Name)) {
			ids++
		}
		stripped := proto.Clone(message)
		attributes += strip(stripped.ProtoReflect())
		raw, err = proto.Marshal(stripped)
		require.NoError(s.t, err)
		for _, word := range []string{nab.Name, nab.Namespace, string(nab.UID), "holdfast-policy", "Velero", "Backup of", "Created"} {
			assert.NotContains(s.t, string(raw), word, what)
		}
	}
	assert.Positive(s.t, ids, "the search finds what is there")
	assert.Positive(s.t, attributes, "search attributes are in clear, as documented")
}

// strip removes workflow IDs, fairness keys (namespaces) and search attributes, and returns how many of the latter there were.
func strip(message protoreflect.Message) int {
	attributes := 0
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch name := string(field.Name()); {
		case name == "search_attributes":
			attributes++
			message.Clear(field)
		case strings.HasSuffix(name, "workflow_id"), name == "activity_type", name == "workflow_type", name == "fairness_key":
			message.Clear(field)
		case field.IsList() && field.Message() != nil:
			for i := range value.List().Len() {
				attributes += strip(value.List().Get(i).Message())
			}
		case field.IsMap():
			if field.MapValue().Message() != nil {
				value.Map().Range(func(_ protoreflect.MapKey, entry protoreflect.Value) bool {
					attributes += strip(entry.Message())
					return true
				})
			}
		case field.Message() != nil:
			attributes += strip(value.Message())
		}
		return true
	})
	return attributes
}
