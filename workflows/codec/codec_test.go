package codec_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/workflows/codec"
)

func hello() []*commonpb.Payload {
	return []*commonpb.Payload{
		{Metadata: map[string][]byte{"encoding": []byte("json/plain"), "own": []byte("kept")}, Data: []byte(`"tenant"`)},
		{Metadata: map[string][]byte{"encoding": []byte("binary/null")}},
	}
}

func equal(t *testing.T, want, got []*commonpb.Payload) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		assert.True(t, proto.Equal(want[i], got[i]), "%v is not %v", got[i], want[i])
	}
}

func encode(t *testing.T, keys *codec.Keys) []*commonpb.Payload {
	t.Helper()
	encoded, err := codec.New(keys).Encode(hello())
	require.NoError(t, err)
	return encoded
}

func TestAPayloadIsReadAsItWasWritten(t *testing.T) {
	keys := open(t, folder(t, map[string]string{"current": "a", "a": base64Key(1)}))
	encoded := encode(t, keys)
	for i, payload := range encoded {
		assert.Equal(t, map[string][]byte{"encoding": []byte(codec.Encoding), codec.MetadataKeyID: []byte("a")}, payload.Metadata)
		assert.NotContains(t, string(payload.Data), "tenant")
		assert.NotContains(t, string(payload.Data), "kept", "its metadata is encrypted too")
		assert.NotEqual(t, payload.Data, encode(t, keys)[i].Data, "each time with another nonce")
	}
	decoded, err := codec.New(keys).Decode(encoded)
	require.NoError(t, err)
	equal(t, hello(), decoded)
}

// Histories that began before encryption was turned on, and after it was turned off, are read.
func TestPayloadsInClearAreRead(t *testing.T) {
	for title, keys := range map[string]*codec.Keys{
		"with keys":         open(t, folder(t, map[string]string{"current": "a", "a": base64Key(1)})),
		"with keys to read": open(t, folder(t, map[string]string{"current": "none", "a": base64Key(1)})),
		"without":           codec.None(),
	} {
		t.Run(title, func(t *testing.T) {
			decoded, err := codec.New(keys).Decode(hello())
			require.NoError(t, err)
			equal(t, hello(), decoded)
		})
	}
	equal(t, hello(), encode(t, codec.None()))
}

func TestKeysRotateWhileTheProcessRuns(t *testing.T) {
	dir := folder(t, map[string]string{"current": "a", "a": base64Key(1)})
	keys := open(t, dir)
	old := encode(t, keys)

	write(t, dir, map[string]string{"current": "b", "b": base64Key(2)})
	require.NoError(t, keys.Refresh(t.Context()))
	fresh := encode(t, keys)
	assert.Equal(t, "b", string(fresh[0].Metadata[codec.MetadataKeyID]))
	for _, encoded := range [][]*commonpb.Payload{old, fresh} {
		decoded, err := codec.New(keys).Decode(encoded)
		require.NoError(t, err)
		equal(t, hello(), decoded)
	}

	write(t, dir, map[string]string{"current": "none"})
	require.NoError(t, keys.Refresh(t.Context()))
	equal(t, hello(), encode(t, keys))
	decoded, err := codec.New(keys).Decode(fresh)
	require.NoError(t, err, "turned off, and still able to read")
	equal(t, hello(), decoded)

	write(t, dir, map[string]string{"current": "b", "a": ""})
	require.NoError(t, keys.Refresh(t.Context()))
	_, err = codec.New(keys).Decode(old)
	var unreadable *codec.UnreadableError
	require.ErrorAs(t, err, &unreadable)
	assert.Equal(t, "a", unreadable.KeyID)
	require.EqualError(t, err, `payload encrypted with key "a": there is no such key in `+dir)
}

// A worker may get a payload of a new key before its next look into the folder.
func TestAKeyAddedAMomentAgoIsFound(t *testing.T) {
	dir := folder(t, map[string]string{"current": "a", "a": base64Key(1)})
	keys := open(t, dir)
	write(t, dir, map[string]string{"current": "b", "b": base64Key(2)})
	fresh := encode(t, open(t, dir))
	eventually.Succeeds(t, time.Minute, func() error {
		decoded, err := codec.New(keys).Decode(fresh)
		if err == nil {
			equal(t, hello(), decoded)
		}
		return err
	})
}

func TestWhatWasTamperedWithIsRefused(t *testing.T) {
	keys := open(t, folder(t, map[string]string{"current": "a", "a": base64Key(1), "twin": base64Key(1), "b": base64Key(2)}))
	const altered = "it was altered, or this is another key of that name"
	tests := map[string]struct {
		tamper func(*commonpb.Payload)
		want   string
	}{
		"ciphertext":               {func(p *commonpb.Payload) { p.Data[len(p.Data)-1] ^= 1 }, altered},
		"nonce":                    {func(p *commonpb.Payload) { p.Data[0] ^= 1 }, altered},
		"cut off":                  {func(p *commonpb.Payload) { p.Data = p.Data[:20] }, altered},
		"empty":                    {func(p *commonpb.Payload) { p.Data = nil }, altered},
		"another key's ID":         {func(p *commonpb.Payload) { p.Metadata[codec.MetadataKeyID] = []byte("b") }, altered},
		"another ID, the same key": {func(p *commonpb.Payload) { p.Metadata[codec.MetadataKeyID] = []byte("twin") }, altered},
		"a key that is not there":  {func(p *commonpb.Payload) { p.Metadata[codec.MetadataKeyID] = []byte("../a") }, "there is no such key in "},
		"no ID":                    {func(p *commonpb.Payload) { delete(p.Metadata, codec.MetadataKeyID) }, `with key "": there is no such key in `},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			encoded := encode(t, keys)
			test.tamper(encoded[0])
			_, err := codec.New(keys).Decode(encoded)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestTheWrongKeyOfTheRightNameIsRefused(t *testing.T) {
	encoded := encode(t, open(t, folder(t, map[string]string{"current": "a", "a": base64Key(1)})))
	_, err := codec.New(open(t, folder(t, map[string]string{"current": "a", "a": base64Key(2)}))).Decode(encoded)
	require.EqualError(t, err, `payload encrypted with key "a": it was altered, or this is another key of that name`)
	_, err = codec.New(codec.None()).Decode(encoded)
	require.EqualError(t, err, `payload encrypted with key "a": no key can be read without --payload-keys-dir`)
}

func TestPayloadsGivenAreNotChanged(t *testing.T) {
	keys := open(t, folder(t, map[string]string{"current": "a", "a": base64Key(1)}))
	given := hello()
	encoded, err := codec.New(keys).Encode(given)
	require.NoError(t, err)
	equal(t, hello(), given)
	before := []*commonpb.Payload{proto.Clone(encoded[0]).(*commonpb.Payload), proto.Clone(encoded[1]).(*commonpb.Payload)}
	_, err = codec.New(keys).Decode(encoded)
	require.NoError(t, err)
	equal(t, before, encoded)
}

// FuzzDecode: whatever comes from Temporal is read as it was written, passed on, or refused with an error.
func FuzzDecode(f *testing.F) {
	dir := f.TempDir()
	keys := fuzzKeys(f, dir)
	sealed, err := codec.New(keys).Encode(hello())
	require.NoError(f, err)
	f.Add(codec.Encoding, "a", sealed[0].Data)
	f.Add(codec.Encoding, "a", sealed[0].Data[:27])
	f.Add(codec.Encoding, "b", []byte{})
	f.Add(codec.Encoding, "", bytes.Repeat([]byte{0}, 28))
	f.Add("json/plain", "a", []byte(`{}`))
	f.Add("", "\x00", []byte{0xff})
	f.Fuzz(func(t *testing.T, encoding, id string, data []byte) {
		payload := &commonpb.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encoding), codec.MetadataKeyID: []byte(id)}, Data: data,
		}
		decoded, err := codec.New(keys).Decode([]*commonpb.Payload{payload})
		switch {
		case encoding != codec.Encoding:
			require.NoError(t, err)
			equal(t, []*commonpb.Payload{payload}, decoded)
		case err != nil:
			var unreadable *codec.UnreadableError
			require.ErrorAs(t, err, &unreadable)
			require.Equal(t, id, unreadable.KeyID)
		default:
			require.Equal(t, "a", id)
			equal(t, hello()[:1], decoded) // the only thing that was ever sealed with the key
		}
	})
}

// FuzzRoundTrip: every payload comes back as it went.
func FuzzRoundTrip(f *testing.F) {
	keys := fuzzKeys(f, f.TempDir())
	f.Add("json/plain", []byte(`{"name":"nightly"}`))
	f.Add(codec.Encoding, []byte{})
	f.Add("", []byte{0})
	f.Fuzz(func(t *testing.T, encoding string, data []byte) {
		payloads := []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte(encoding)}, Data: data}}
		encoded, err := codec.New(keys).Encode(payloads)
		require.NoError(t, err)
		decoded, err := codec.New(keys).Decode(encoded)
		require.NoError(t, err)
		equal(t, payloads, decoded)
	})
}
