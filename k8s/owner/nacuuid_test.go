package owner_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	"holdfast.dev/holdfast/k8s/owner"
)

const (
	cluster = "west"
	uid     = "0b5e8b5e-6b1c-4a55-9d52-2a9c7f0f1e11"
	// uuidOf is the UUID that cluster and uid give for ever: objects made years ago are found again by it.
	uuidOf = "65cfd26d-53a6-50fd-9039-297e040288b4"
)

func TestNACUUIDIsNamespaceNameAndUUIDInAtMost63Characters(t *testing.T) {
	letters := func(n int) string { return strings.Repeat("abcdefghij", 7)[:n] }
	tests := map[string]struct {
		namespace, name string
		want            string
	}{
		"both fit":                        {"team", "nightly", "team-nightly-"},
		"both fit exactly":                {letters(12), letters(13), letters(12) + "-" + letters(13) + "-"},
		"one character too many":          {letters(12), letters(14), letters(12) + "-" + letters(13) + "-"},
		"a long name is cut":              {"team", letters(63), "team-" + letters(21) + "-"},
		"room for one letter of the name": {letters(24), "nightly", letters(24) + "-n-"},
		"a namespace of 25 characters":    {letters(25), "nightly", letters(25) + "-"},
		"a namespace of 26 characters":    {letters(26), "nightly", letters(25) + "-"},
		"a namespace of 63 characters":    {letters(63), "nightly", letters(25) + "-"},
		"a namespace cut at a hyphen":     {letters(24) + "-prod", "nightly", letters(24) + "--"},
		"a name cut after a hyphen":       {letters(20), "week-ly", letters(20) + "-week--"},
		"a name with dots":                {"team", "a.b.c", "team-a.b.c-"},
		"a name cut before a dot":         {letters(20), "daily.prod", letters(20) + "-daily-"},
		"a name cut after a dot":          {letters(19), "daily.prod", letters(19) + "-daily-"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			got := owner.NACUUID(cluster, test.namespace, test.name, uid)
			assert.Equal(t, test.want+uuidOf, got)
			requireNameAndLabel(t, got)
		})
	}
}

// The name is derived, so that it is known before anything is written and no second object can be made.
func TestNACUUIDTellsApartWhatIsNotTheSame(t *testing.T) {
	name := owner.NACUUID(cluster, "team", "nightly", uid)
	assert.Equal(t, name, owner.NACUUID(cluster, "team", "nightly", uid), "the same object")
	parsed, err := uuid.Parse(strings.TrimPrefix(name, "team-nightly-"))
	require.NoError(t, err)
	assert.Equal(t, uuid.Version(5), parsed.Version())

	seen := map[string]string{name: "the object itself"}
	for title, other := range map[string]string{
		"another cluster":                      owner.NACUUID("east", "team", "nightly", uid),
		"recreated under its old name":         owner.NACUUID(cluster, "team", "nightly", "ffffffff-6b1c-4a55-9d52-2a9c7f0f1e11"),
		"another name":                         owner.NACUUID(cluster, "team", "weekly", "2"),
		"another namespace":                    owner.NACUUID(cluster, "crew", "nightly", "3"),
		"namespace and name divided elsewhere": owner.NACUUID(cluster, "team-nightly", "x", "4"),
	} {
		assert.NotContains(t, seen, other, title)
		seen[other] = title
	}
}

// Long names agree in all that is left of them: only the UUID tells them apart.
func TestCutNamesStayApart(t *testing.T) {
	long := strings.Repeat("n", 63)
	assert.NotEqual(t, owner.NACUUID(cluster, long, "a", "1"), owner.NACUUID(cluster, long, "a", "2"))
	assert.NotEqual(t, owner.NACUUID(cluster, long, "a", "1"), owner.NACUUID("east", long, "a", "1"))
}

func requireNameAndLabel(t *testing.T, name string) {
	t.Helper()
	require.LessOrEqual(t, len(name), 63)
	require.Empty(t, validation.IsDNS1123Subdomain(name), "%q is no object's name", name)
	require.Empty(t, validation.IsValidLabelValue(name), "%q is no label's value", name)
}

func TestNACUUIDIsANameAndALabelForEveryObject(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(alphabet string, most int) string {
		letters := make([]byte, 1+random.IntN(most))
		for i := range letters {
			letters[i] = alphabet[random.IntN(len(alphabet))]
		}
		return string(letters)
	}
	judged := 0
	for range 20_000 {
		namespace, name := word("abz09-", 63), word("abz09-..", 70)
		if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			continue
		}
		judged++
		requireNameAndLabel(t, owner.NACUUID(cluster, namespace, name, uid))
	}
	require.Greater(t, judged, 500, "too few of the random names were names")
}

func FuzzNACUUID(f *testing.F) {
	f.Add("west", "team", "nightly", uid)
	f.Add("west", strings.Repeat("n", 25), "nightly", uid)
	f.Add("west", strings.Repeat("n", 63), strings.Repeat("m", 253), uid)
	f.Add("west", "abcdefghijklmnopqrs", "daily.prod", "")
	f.Fuzz(func(t *testing.T, cluster, namespace, name, uid string) {
		if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			t.Skip("the API server takes no such object")
		}
		got := owner.NACUUID(cluster, namespace, name, uid)
		requireNameAndLabel(t, got)
		require.True(t, strings.HasPrefix(got, namespace[:min(25, len(namespace))]+"-"), got)
		require.Equal(t, got, owner.NACUUID(cluster, namespace, name, uid))
		require.NotEqual(t, got, owner.NACUUID(cluster, namespace, name, uid+"2"))
	})
}
