package digest_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/digest"
)

var (
	key  = digest.Key(bytes.Repeat([]byte{1}, digest.KeyBytes))
	keys = digest.Place{Resource: "secrets", Name: "keys"}
)

const secret = `{"kind":"Secret","metadata":{"name":"keys","labels":{"a":"b"}},"data":{"user":"dQ==","password":"cA=="},"size":9007199254740993}`

func TestWhatDiffersIsNamed(t *testing.T) {
	recorded := key.Of(keys, []byte(secret))
	for title, test := range map[string]struct {
		place   digest.Place
		content string
		want    []string
	}{
		"a value":                   {keys, `{"kind":"Secret","metadata":{"name":"keys","labels":{"a":"b"}},"data":{"user":"dQ==","password":"cAo="},"size":9007199254740993}`, []string{"data.password"}},
		"a value deep in it":        {keys, `{"kind":"Secret","metadata":{"name":"keys","labels":{"a":"c"}},"data":{"user":"dQ==","password":"cA=="},"size":9007199254740993}`, []string{"metadata.labels"}},
		"a number that no float is": {keys, `{"kind":"Secret","metadata":{"name":"keys","labels":{"a":"b"}},"data":{"user":"dQ==","password":"cA=="},"size":9007199254740992}`, []string{"size"}},
		"a field more":              {keys, `{"kind":"Secret","metadata":{"name":"keys","labels":{"a":"b"}},"data":{"user":"dQ==","password":"cA==","x":""},"size":9007199254740993}`, []string{"data.x"}},
		"a field less":              {keys, `{"kind":"Secret","metadata":{"name":"keys","labels":{"a":"b"}},"data":{"user":"dQ=="},"size":9007199254740993}`, nil},
		"its form":                  {keys, strings.ReplaceAll(secret, `,"`, `, "`), nil},
		"no JSON":                   {keys, `no`, nil},
		"another JSON":              {keys, `["a"]`, nil},
		"a field at another level":  {keys, strings.Replace(secret, `"data":{"user":"dQ==","password":"cA=="}`, `"data.user":"dQ==","data.password":"cA=="`, 1), []string{"data.user", "data.password"}},
		"a second object behind it": {keys, secret + secret, nil},
		"values that are exchanged": {keys, `{"kind":"Secret","metadata":{"name":"keys","labels":{"a":"b"}},"data":{"user":"cA==","password":"dQ=="},"size":9007199254740993}`, []string{"data.user", "data.password"}},
		"another object's": {digest.Place{Resource: "secrets", Name: "other"}, secret, []string{
			"kind", "metadata.name", "metadata.labels", "data.user", "data.password", "size",
		}},
	} {
		t.Run(title, func(t *testing.T) {
			assert.False(t, key.Same(test.place, recorded, []byte(test.content)))
			assert.Equal(t, test.want, key.Differences(test.place, recorded, []byte(test.content)))
		})
	}
	assert.True(t, key.Same(keys, recorded, []byte(secret)))
}

func TestAnotherKeyMakesOtherDigests(t *testing.T) {
	other := digest.Key(bytes.Repeat([]byte{2}, digest.KeyBytes))
	assert.NotEqual(t, key.Of(keys, []byte(secret)).Whole, other.Of(keys, []byte(secret)).Whole)
	assert.NotEqual(t, key.ID(), other.ID())
}

func TestASetFits(t *testing.T) {
	const objects = 2000
	set := digest.NewSet(key)
	for i := range objects {
		place := digest.Place{Resource: "configmaps", Name: fmt.Sprintf("settings-%d", i)}
		made := key.Of(place, fmt.Appendf(nil, `{"kind":"ConfigMap","metadata":{"name":"settings-%d"},"data":{"a":"%d"}}`, i, i))
		set.Add(place, made)
	}
	first := set.Places()[0]
	for _, test := range []struct {
		limit        int
		fields, left bool
	}{{1 << 20, true, false}, {60 << 10, false, false}, {10 << 10, false, true}} {
		packed, err := set.Pack(test.limit)
		require.NoError(t, err)
		assert.LessOrEqual(t, len(packed), test.limit)
		read, err := digest.Unpack(packed)
		require.NoError(t, err)
		assert.Equal(t, objects, read.Total(), "all are counted")
		assert.Equal(t, test.left, read.Left > 0, test.limit)
		kept, found := read.Get(first)
		require.True(t, found)
		assert.Equal(t, test.fields, len(kept.Fields) > 0, test.limit)
		assert.False(t, key.Same(first, kept, []byte(`{"kind":"ConfigMap"}`)), "a change is found with any set")
	}
}

// What a tenant puts into an archive must not fill the memory.
func TestWhatHasManyFieldsHasNoneOfItsOwn(t *testing.T) {
	var fields []string
	for i := range 1001 {
		fields = append(fields, fmt.Sprintf(`"%d":{}`, i))
	}
	for _, test := range []struct{ fields, want int }{{1000, 4000}, {1001, 0}} {
		content := "{" + strings.Join(fields[:test.fields], ",") + "}"
		assert.Len(t, key.Of(keys, []byte(content)).Fields, test.want)
		assert.True(t, key.Same(keys, key.Of(keys, []byte(content)), []byte(content)))
	}
	set := digest.NewSet(key)
	for i := range 50_001 {
		set.Add(digest.Place{Resource: "configmaps", Name: fmt.Sprint(i)}, digest.Object{Whole: make([]byte, 16), Fields: make([]byte, 4000)})
	}
	assert.Equal(t, 50_001, set.Total())
	assert.Len(t, set.Places(), 50_000)
}

func TestHowVeleroSpells(t *testing.T) {
	const clean = "resources/secrets/namespaces/team/keys.json"
	for file, byVelero := range map[string]bool{
		clean: true, "./" + clean: true, "/" + clean: false, "././" + clean: false, clean + "/": false, "../" + clean: false,
		"resources//secrets/namespaces/team/keys.json": false, "resources/zz/../secrets/namespaces/team/keys.json": false,
	} {
		spelled, own := digest.Spelled(file)
		assert.Equal(t, clean, spelled, file)
		assert.Equal(t, byVelero, own, file)
	}
}

func TestPlaceOf(t *testing.T) {
	for file, want := range map[string]struct {
		place         digest.Place
		copied, found bool
	}{
		"resources/secrets/namespaces/team/keys.json":                       {keys, false, true},
		"./resources/secrets/v1-preferredversion/namespaces/team/keys.json": {keys, true, true},
		"resources/secrets/v1/namespaces/team/keys.json":                    {digest.Place{Resource: "secrets/v1", Name: "keys"}, false, true},
		"resources/secrets/namespaces/other/keys.json":                      {},
		"resources/secrets/namespaces/team/keys.yaml":                       {place: keys},
		"resources/persistentvolumes/cluster/pv.json":                       {digest.Place{Resource: "persistentvolumes/cluster", Name: "pv"}, false, true},
		"resources/persistentvolumes/v1-preferredversion/cluster/pv.json":   {digest.Place{Resource: "persistentvolumes/cluster", Name: "pv"}, true, true},
		"resources/persistentvolumes/v2/cluster/pv.json":                    {digest.Place{Resource: "persistentvolumes/v2/cluster", Name: "pv"}, false, true},
		"resources/secrets/namespaces/team/more/keys.json":                  {},
		"resources/secrets/keys.json":                                       {},
		"resources/" + strings.Repeat("s", 256) + "/cluster/keys.json":      {},
		"metadata/version": {},
		"resources/deployments.apps/v1-preferredversion/namespaces/team/web.json": {digest.Place{Resource: "deployments.apps", Name: "web"}, true, true},
		// Velero cleans what it reads.
		"resources/secrets/namespaces/team/../../../secrets/namespaces/team/keys.json": {keys, false, true},
		"/resources//secrets/././zz/../namespaces/team/keys.json/":                     {keys, false, true},
		"../../resources/secrets/namespaces/team/keys.json":                            {keys, false, true},
	} {
		place, copied, found := digest.PlaceOf(file, "team")
		assert.Equal(t, want.found, found, file)
		if want.found {
			assert.Equal(t, want.place, place, file)
			assert.Equal(t, want.copied, copied, file)
		}
	}
}
