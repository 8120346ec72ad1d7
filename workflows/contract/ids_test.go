package contract_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
)

func TestWorkflowIDNamesOneIncarnation(t *testing.T) {
	ref := contract.ObjectRef{Namespace: "team", Name: "nightly", UID: "0b5e"}
	id := contract.WorkflowID("west", contract.KindBackup, ref)
	require.Equal(t, "west/nab/team/nightly/0b5e", id, "recorded histories and running workflows have this form")

	others := map[string]string{
		"another cluster":   contract.WorkflowID("east", contract.KindBackup, ref),
		"another kind":      contract.WorkflowID("west", "nar", ref),
		"another namespace": contract.WorkflowID("west", contract.KindBackup, contract.ObjectRef{Namespace: "t", Name: ref.Name, UID: ref.UID}),
		"another name":      contract.WorkflowID("west", contract.KindBackup, contract.ObjectRef{Namespace: "team", Name: "n", UID: ref.UID}),
		"recreated":         contract.WorkflowID("west", contract.KindBackup, contract.ObjectRef{Namespace: "team", Name: "nightly", UID: "77"}),
	}
	for title, other := range others {
		t.Run(title, func(t *testing.T) { assert.NotEqual(t, id, other) })
	}
}

func TestWhatIsNoWorkflowIDIsRefused(t *testing.T) {
	for title, id := range map[string]string{
		"nothing":         "",
		"a name":          "nightly",
		"a part missing":  "west/nab/team/nightly",
		"a part too many": "west/nab/team/nightly/0b5e/1",
	} {
		t.Run(title, func(t *testing.T) {
			_, _, _, err := contract.ParseWorkflowID(id)
			require.ErrorContains(t, err, "is not <cluster>/<kind>/<namespace>/<name>/<uid>")
		})
	}
}

// FuzzWorkflowID: whatever the parts, an ID is read back as they were, or not at all.
func FuzzWorkflowID(f *testing.F) {
	f.Add("west", "nab", "team", "nightly", "0b5e8b5e-6b1c-4a55-9d52-2a9c7f0f1e11")
	f.Add("west", "nab", "team", "a.name.with-dots", "uid")
	f.Add("", "", "", "", "")
	f.Add("we/st", "nab", "team", "nightly", "uid")
	f.Add("west", "nab", "team", "../other/nightly", "uid")
	f.Add("wést", "n\x00b", " ", "%2F", "\n")
	f.Fuzz(func(t *testing.T, cluster, kind, namespace, name, uid string) {
		want := contract.ObjectRef{Namespace: namespace, Name: name, UID: uid}
		gotCluster, gotKind, got, err := contract.ParseWorkflowID(contract.WorkflowID(cluster, contract.Kind(kind), want))
		if strings.Contains(cluster+kind+namespace+name+uid, "/") {
			require.Error(t, err, "no Kubernetes name holds a slash: it would be read as another object's")
			return
		}
		require.NoError(t, err)
		require.Equal(t, cluster, gotCluster)
		require.Equal(t, contract.Kind(kind), gotKind)
		require.Equal(t, want, got)
	})
}

// FuzzParseWorkflowID: what is read as an ID is that ID, letter for letter.
func FuzzParseWorkflowID(f *testing.F) {
	f.Add("west/nab/team/nightly/0b5e")
	f.Add("////")
	f.Add("a/b/c")
	f.Fuzz(func(t *testing.T, id string) {
		cluster, kind, ref, err := contract.ParseWorkflowID(id)
		if err != nil {
			return
		}
		require.Equal(t, id, contract.WorkflowID(cluster, kind, ref))
	})
}

func TestObjectsAreWrittenAsPeopleWriteThem(t *testing.T) {
	assert.Equal(t, "team/nightly", contract.ObjectRef{Namespace: "team", Name: "nightly", UID: "u"}.String())
	assert.Equal(t, "holdfast-west", contract.TaskQueue("west"))
}
