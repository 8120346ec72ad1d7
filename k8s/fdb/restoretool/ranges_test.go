package restoretool_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/fdb/restoretool"
)

// oneTransaction is what fdbcli 7.3.48 printed for: begin; getversion; getrange "" \xff 100001; getrange b c 5; reset.
const oneTransaction = ">>> begin\nTransaction started\n>>> getversion\n3324999\n>>> getrange  \\xff 100001\n\n" +
	"Range limited to 100001 keys\n`a\\x00\\xff' is `x'y'\n`b' is `2'\n`c d' is `'\n\n" +
	">>> getrange b c 5\n\nRange limited to 5 keys\n`b' is `2'\n\n>>> reset\nTransaction reset\n"

func TestRangesOfOneTransaction(t *testing.T) {
	version, err := restoretool.ParseVersion([]byte(oneTransaction))
	require.NoError(t, err)
	assert.EqualValues(t, 3324999, version)
	ranges, whole, err := restoretool.ParseRanges([]byte(oneTransaction))
	require.NoError(t, err)
	assert.True(t, whole)
	assert.Equal(t, [][]restoretool.KeyValue{
		{
			{Key: []byte("a\x00\xff"), Value: []byte("x'y")},
			{Key: []byte("b"), Value: []byte("2")},
			{Key: []byte("c d"), Value: []byte{}},
		},
		{{Key: []byte("b"), Value: []byte("2")}},
	}, ranges)
}

func TestAnEmptyRange(t *testing.T) {
	ranges, whole, err := restoretool.ParseRanges([]byte("\nRange limited to 1000 keys\n\n"))
	require.NoError(t, err)
	assert.True(t, whole)
	assert.Equal(t, [][]restoretool.KeyValue{nil}, ranges)
}

func TestWhatIsNoRange(t *testing.T) {
	for name, output := range map[string]string{
		"nothing":          "",
		"an error":         "ERROR: Database is locked (1038)\n",
		"half a line":      "\nRange limited to 5 keys\n`a' is `b\n",
		"no value":         "\nRange limited to 5 keys\n`a'\n",
		"an odd escape":    "\nRange limited to 5 keys\n`a\\q' is `b'\n",
		"a short escape":   "\nRange limited to 5 keys\n`a\\x4' is `b'\n",
		"no hexadecimal":   "\nRange limited to 5 keys\n`a' is `\\xzz'\n",
		"the value's half": "\nRange limited to 5 keys\n`a' is `\\'\n",
	} {
		_, _, err := restoretool.ParseRanges([]byte(output))
		require.Error(t, err, name)
	}
	for _, output := range []string{"", "\nRange limited to 5 keys\n`1' is `2'\n17\n", ">>> getversion\n99999999999999999999\n", "0\n"} {
		_, err := restoretool.ParseVersion([]byte(output))
		require.Error(t, err, output)
	}
}

// Where a key ends cannot be told if it holds what fdbcli prints after it.
func TestALineThatCanBeReadInTwoWays(t *testing.T) {
	ranges, whole, err := restoretool.ParseRanges([]byte("\nRange limited to 5 keys\n`a' is `b' is `c'\n"))
	require.NoError(t, err)
	assert.False(t, whole)
	assert.Equal(t, [][]restoretool.KeyValue{{{Key: []byte("a"), Value: []byte("b' is `c")}}}, ranges)
}

func TestAKeyAsAnArgument(t *testing.T) {
	assert.Equal(t, `""`, restoretool.KeyArgument(nil))
	assert.Equal(t, `\x61\x20\x3b\x22\x5c\x00\xff`, restoretool.KeyArgument([]byte("a ;\"\\\x00\xff")))
}

func TestWithin(t *testing.T) {
	for _, test := range []struct {
		start, end, outerStart, outerEnd string
		want                             bool
	}{
		{"a", "b", "a", "b", true},
		{"a1", "a2", "a", "b", true},
		{"a", "b", `""`, `\xff`, true},
		{`a\xf0`, `a\xf1`, "a", "b", true},
		{"a", "c", "a", "b", false},
		{"A", "b", "a", "b", false},
		{"a", "b", `a\q`, "c", false},
	} {
		assert.Equal(t, test.want, restoretool.Within(test.start, test.end, test.outerStart, test.outerEnd), "%+v", test)
	}
}
