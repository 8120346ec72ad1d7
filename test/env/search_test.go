package env

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A text is found in every form in which it can be in a payload.
func TestSearchKnowsEveryForm(t *testing.T) {
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
