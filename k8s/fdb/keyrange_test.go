package fdb_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/fdb"
)

func TestKeysAreReadAsTheToolsReadThem(t *testing.T) {
	for text, want := range map[string]string{
		"a": "a", `\x61`: "a", `\xFF`: "\xff", `a\\b`: `a\b`, `\\x61`: `\x61`, `\x00\xff!`: "\x00\xff!", "": "",
	} {
		key, err := fdb.ParseKey(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, string(key), text)
	}
	for _, text := range []string{`\`, `\n`, `\x`, `\x6`, `\xgg`, `a\`, `\\\`} {
		_, err := fdb.ParseKey(text)
		require.Error(t, err, text)
	}
}

func TestRangesThatCanBeBackedUp(t *testing.T) {
	for text, wrong := range map[string]string{
		"a b": "", `a \xff`: "", `\x61 b`: "", `\xfe\xff \xff`: "", `\xff\x02/ \xff\x03`: "", `a \xff\xff`: "",
		"b a": "its start must come before its end", "a a": "its start must come before its end", `\x62 a`: "its start must come before its end",
		"a": "its start must come before its end", `a \xfg`: "is not a byte", `a \q`: "after a backslash",
	} {
		_, err := fdb.ParseKeyRanges([]string{"x y", text})
		if wrong == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, wrong, text)
	}
}

func TestTheSameKeysInOtherLetters(t *testing.T) {
	for name, test := range map[string]struct {
		a, b []string
		same bool
	}{
		"no range":                      {nil, nil, true},
		"none is all, some are not":     {nil, []string{`\x00 \xff`}, false},
		"another case":                  {[]string{`a \xff`}, []string{`a \xFF`}, true},
		"escaped":                       {[]string{"a b"}, []string{`\x61 \x62`}, true},
		"another order":                 {[]string{"a b", "x y"}, []string{"x y", "a b"}, true},
		"two that meet":                 {[]string{"a b", "b c"}, []string{"a c"}, true},
		"two that overlap":              {[]string{"a d", "b c"}, []string{"a d"}, true},
		"a gap":                         {[]string{"a b", "c d"}, []string{"a d"}, false},
		"less":                          {[]string{"a b"}, []string{"a c"}, false},
		"what cannot be, as it is":      {[]string{"b a"}, []string{"b a"}, true},
		"what cannot be is nothing":     {[]string{"b a"}, nil, false},
		"what cannot be is not another": {[]string{"b a"}, []string{"c a"}, false},
	} {
		assert.Equal(t, test.same, fdb.SameKeys(test.a, test.b), name)
		assert.Equal(t, test.same, fdb.SameKeys(test.b, test.a), name)
	}
}
