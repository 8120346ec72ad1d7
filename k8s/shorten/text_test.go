package shorten_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/shorten"
)

func TestLongTextsAreCutAndMarked(t *testing.T) {
	for title, test := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"short":                        {"abc", 10, "abc"},
		"exactly as long as may be":    {"abcdefghij", 10, "abcdefghij"},
		"one too long":                 {"abcdefghijk", 10, "abcdefg..."},
		"in the middle of a character": {"abcdefégh!", 10, "abcdef..."},
		"empty":                        {"", 10, ""},
	} {
		t.Run(title, func(t *testing.T) { assert.Equal(t, test.want, shorten.Text(test.text, test.limit)) })
	}
}

func FuzzShorten(f *testing.F) {
	f.Add("abcdefghijk", 10)
	f.Add(strings.Repeat("é", 50), 11)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 3 || !utf8.ValidString(text) {
			t.Skip("no such limit, no such text")
		}
		short := shorten.Text(text, limit)
		require.LessOrEqual(t, len(short), limit)
		require.True(t, utf8.ValidString(short))
		require.True(t, strings.HasPrefix(text, strings.TrimSuffix(short, "...")) || short == text)
	})
}
