package digest_test

import (
	"bytes"
	"fmt"
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
	recorded, err := key.Of(keys, []byte(secret))
	require.NoError(t, err)
	for title, test := range map[string]struct {
		place   digest.Place
		content string
		want    []string
	}{
		"nothing":                   {keys, secret, nil},
		"its form":                  {keys, `{"size": 9007199254740993, "data":{"password":"cA==","user":"dQ=="},"metadata":{"labels":{"a":"b"},"name":"keys"},"kind":"Secret"}`, nil},
		"a value":                   {keys, `{"kind":"Secret","metadata":{"name":"keys","labels":{"a":"b"}},"data":{"user":"dQ==","password":"cAo="},"size":9007199254740993}`, []string{"data.password"}},
		"a value deep in it":        {keys, `{"kind":"Secret","metadata":{"name":"keys","labels":{"a":"c"}},"data":{"user":"dQ==","password":"cA=="},"size":9007199254740993}`, []string{"metadata.labels"}},
		"a number that no float is": {keys, `{"kind":"Secret","metadata":{"name":"keys","labels":{"a":"b"}},"data":{"user":"dQ==","password":"cA=="},"size":9007199254740992}`, []string{"size"}},
		"a field more":              {keys, `{"kind":"Secret","metadata":{"name":"keys","labels":{"a":"b"}},"data":{"user":"dQ==","password":"cA==","x":""},"size":9007199254740993}`, []string{"data.x"}},
		"a field less":              {keys, `{"kind":"Secret","metadata":{"name":"keys","labels":{"a":"b"}},"data":{"user":"dQ=="},"size":9007199254740993}`, []string{}},
		"values that are exchanged": {keys, `{"kind":"Secret","metadata":{"name":"keys","labels":{"a":"b"}},"data":{"user":"cA==","password":"dQ=="},"size":9007199254740993}`, []string{"data.password", "data.user"}},
		"another object's": {digest.Place{Resource: "secrets", Name: "other"}, secret, []string{
			"data.password", "data.user", "kind", "metadata.labels", "metadata.name", "size",
		}},
	} {
		t.Run(title, func(t *testing.T) {
			differing, err := key.Differences(test.place, recorded, []byte(test.content))
			require.NoError(t, err)
			assert.Equal(t, test.want, differing)
		})
	}
	_, err = key.Differences(keys, recorded, []byte(`[]`))
	require.ErrorContains(t, err, "no JSON object")
}

func TestAnotherKeyMakesOtherDigests(t *testing.T) {
	other := digest.Key(bytes.Repeat([]byte{2}, digest.KeyBytes))
	one, err := key.Of(keys, []byte(secret))
	require.NoError(t, err)
	two, err := other.Of(keys, []byte(secret))
	require.NoError(t, err)
	assert.NotEqual(t, one.Whole, two.Whole)
	assert.NotEqual(t, key.ID(), other.ID())
}

func TestASetFits(t *testing.T) {
	const objects = 2000
	set := digest.NewSet(key)
	for i := range objects {
		place := digest.Place{Resource: "configmaps", Name: fmt.Sprintf("settings-%d", i)}
		made, err := key.Of(place, fmt.Appendf(nil, `{"kind":"ConfigMap","metadata":{"name":"settings-%d"},"data":{"a":"%d"}}`, i, i))
		require.NoError(t, err)
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
		assert.Equal(t, objects, len(read.Places())+read.Left, "all are counted")
		assert.Equal(t, test.left, read.Left > 0, test.limit)
		kept, found := read.Get(first)
		require.True(t, found)
		assert.Equal(t, test.fields, len(kept.Fields) > 0, test.limit)
		differing, err := key.Differences(first, kept, []byte(`{"kind":"ConfigMap"}`))
		require.NoError(t, err)
		assert.NotNil(t, differing, "a change is found with any set")
	}
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
		"resources/secrets/v1/namespaces/team/keys.json":                    {},
		"resources/secrets/namespaces/other/keys.json":                      {},
		"resources/secrets/namespaces/team/keys.yaml":                       {place: keys},
		"resources/persistentvolumes/cluster/pv.json":                       {},
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
