package codec_test

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/codec"
)

// rawKey is 32 bytes that no text has.
func rawKey(seed byte) []byte { return bytes.Repeat([]byte{0x80 | seed, seed}, 16) }

func base64Key(seed byte) string { return base64.StdEncoding.EncodeToString(rawKey(seed)) }

// write puts files into a folder, those of empty content away.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		if content == "" {
			require.NoError(t, os.Remove(filepath.Join(dir, name)))
			continue
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, files)
	return dir
}

func open(t *testing.T, dir string) *codec.Keys {
	t.Helper()
	keys, err := codec.Open(dir)
	require.NoError(t, err)
	return keys
}

func TestAFolderOfKeysIsRead(t *testing.T) {
	for title, files := range map[string]map[string]string{
		"as raw bytes":             {"current": "a", "a": string(rawKey(1))},
		"in base64":                {"current": "a", "a": base64Key(1)},
		"in base64, with an end":   {"current": "a\n", "a": base64Key(1) + "\n"},
		"several":                  {"current": "b.2-x_y", "a": base64Key(1), "b.2-x_y": string(rawKey(2))},
		"to read with, only":       {"current": "none", "a": base64Key(1)},
		"with files of the system": {"current": "a", "a": base64Key(1), "..timestamp": "x"},
	} {
		t.Run(title, func(t *testing.T) {
			c := codec.New(open(t, folder(t, files)))
			encoded, err := c.Encode(hello())
			require.NoError(t, err)
			decoded, err := c.Decode(encoded)
			require.NoError(t, err)
			equal(t, hello(), decoded)
		})
	}
}

// A Secret is mounted as links into a folder of the volume.
func TestAMountedSecretIsRead(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "..2026_01_01"), 0o700))
	require.NoError(t, os.Symlink("..2026_01_01", filepath.Join(dir, "..data")))
	write(t, filepath.Join(dir, "..2026_01_01"), map[string]string{"current": "a", "a": base64Key(1)})
	for _, name := range []string{"current", "a"} {
		require.NoError(t, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
	codecOf := codec.New(open(t, dir))
	encoded, err := codecOf.Encode(hello())
	require.NoError(t, err)
	assert.Equal(t, "a", string(encoded[0].Metadata[codec.MetadataKeyID]))
}

// A bad folder ends the process at its start, in one line that names flag and file and shows nothing of a key.
func TestABadFolderIsRefusedInOneLine(t *testing.T) {
	const secret = "do-not-show-this-secret-anywhere"
	tests := map[string]struct {
		files map[string]string
		want  string // the file, and what is wrong with it
	}{
		"empty":                         {map[string]string{}, "/current: must contain the name of the key file that encrypts"},
		"no current":                    {map[string]string{"a": base64Key(1)}, "/current: must contain the name of the key file that encrypts"},
		"current is blank":              {map[string]string{"current": " \n", "a": base64Key(1)}, "/current: must contain the name"},
		"current names none of them":    {map[string]string{"current": secret, "a": base64Key(1)}, "/current: the key that it names is not in the folder"},
		"current names a path":          {map[string]string{"current": "../a", "a": base64Key(1)}, "/current: the key that it names is not in the folder"},
		"current is a key":              {map[string]string{"current": base64Key(1), "a": base64Key(1)}, "/current: the key that it names is not in the folder"},
		"current names itself":          {map[string]string{"current": "current", "a": base64Key(1)}, "/current: the key that it names is not in the folder"},
		"a password":                    {map[string]string{"current": "a", "a": secret}, "/a: 32 characters of text: a key must be 32 random bytes"},
		"a password in base64":          {map[string]string{"current": "a", "a": base64.StdEncoding.EncodeToString([]byte(secret))}, "/a: 32 characters of text"},
		"hexadecimal":                   {map[string]string{"current": "a", "a": "d0c0d0c0d0c0d0c0d0c0d0c0d0c0d0c0"}, "/a: 32 characters of text"},
		"too short":                     {map[string]string{"current": "a", "a": "do-not-show"}, "/a: must be 32 random bytes, as they are or in base64"},
		"AES-128":                       {map[string]string{"current": "a", "a": base64.StdEncoding.EncodeToString(rawKey(1)[:16])}, "/a: must be 32 random bytes"},
		"raw, with an end":              {map[string]string{"current": "a", "a": string(rawKey(1)) + "\n"}, "/a: must be 32 random bytes"},
		"another file":                  {map[string]string{"current": "a", "a": base64Key(1), "README": "do-not-show"}, "/README: must be 32 random bytes"},
		"a large file":                  {map[string]string{"current": "a", "a": base64Key(1), "b": string(bytes.Repeat([]byte("x"), 1<<20))}, "/b: too long for a key"},
		"a key of the name kept for it": {map[string]string{"current": "a", "a": base64Key(1), "none": base64Key(2)}, "/none: no key can have this name"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			dir := folder(t, test.files)
			_, err := codec.Open(dir)
			require.ErrorContains(t, err, "--payload-keys-dir: "+dir+test.want)
			assert.NotContains(t, err.Error(), "\n")
			assert.NotContains(t, err.Error(), "do-not-show")
			assert.NotContains(t, err.Error(), base64Key(1))
		})
	}
	missing := filepath.Join(t.TempDir(), "missing")
	_, err := codec.Open(missing)
	require.ErrorContains(t, err, "--payload-keys-dir: read keys: open "+missing)
}

func TestAFolderThatBecomesBadChangesNothing(t *testing.T) {
	dir := folder(t, map[string]string{"current": "a", "a": base64Key(1)})
	keys := open(t, dir)
	require.NoError(t, keys.Refresh(t.Context()))
	encoded, err := codec.New(keys).Encode(hello())
	require.NoError(t, err)

	write(t, dir, map[string]string{"current": "b", "a": ""})
	require.ErrorContains(t, keys.Refresh(t.Context()), "/current: the key that it names is not in the folder")
	decoded, err := codec.New(keys).Decode(encoded)
	require.NoError(t, err, "the last good keys stay in force")
	equal(t, hello(), decoded)

	write(t, dir, map[string]string{"b": base64Key(2)})
	require.NoError(t, keys.Refresh(t.Context()))
}

func TestWithoutAFolderThereIsNothingToRefresh(t *testing.T) {
	keys := open(t, "")
	require.NoError(t, keys.Refresh(t.Context()))
}
