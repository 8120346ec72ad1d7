package drill

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/activities/fdbtool"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/workflows/contract"
)

// database answers as fdbcli does, with at most so many keys in an answer.
type database struct {
	keys   []string // sorted
	most   int
	calls  []string
	answer func(commands string) ([]byte, *contract.FDBFailure)
}

var getRange = regexp.MustCompile(`getrange (\S+) (\S+) ([0-9]+)`)

func (d *database) run(_ context.Context, operation fdbtool.Operation, args []string) ([]byte, *contract.FDBFailure) {
	d.calls = append(d.calls, args[1])
	if operation != fdbtool.ReadRange {
		return nil, &contract.FDBFailure{Class: contract.FDBClassOther, Message: string(operation)}
	}
	if d.answer != nil {
		return d.answer(args[1])
	}
	var out bytes.Buffer
	if strings.Contains(args[1], "getversion") {
		out.WriteString(">>> getversion\n77\n")
	}
	for _, found := range getRange.FindAllStringSubmatch(args[1], -1) {
		begin, limit := decode(found[1]), number(found[3])
		fmt.Fprintf(&out, "\nRange limited to %d keys\n", limit)
		printed := 0
		for _, key := range d.keys {
			if key < begin || key >= decode(found[2]) || printed == limit {
				continue
			}
			if printed++; printed > d.most {
				return nil, &contract.FDBFailure{Class: contract.FDBClassTooMuch, Message: "too much"}
			}
			fmt.Fprintf(&out, "`%s' is `%s'\n", key, strings.ToUpper(key))
		}
		out.WriteString("\n")
	}
	return out.Bytes(), nil
}

var hexByte = regexp.MustCompile(`\\x(..)`)

func decode(word string) string {
	if word == `""` {
		return ""
	}
	return hexByte.ReplaceAllStringFunc(word, func(text string) string {
		value, _ := strconv.ParseUint(text[2:], 16, 8)
		return string([]byte{byte(value)})
	})
}

func number(text string) int {
	value, _ := strconv.Atoi(text)
	return value
}

func filled(keys int) *database {
	d := &database{most: 1 << 30}
	for i := range keys {
		d.keys = append(d.keys, fmt.Sprintf("k%06d", i))
	}
	return d
}

func TestPagesHoldEveryKeyOnce(t *testing.T) {
	for _, keys := range []int{0, 1, firstPage - 1, firstPage, firstPage + 1, 5 * firstPage} {
		d := filled(keys)
		found, trouble := scan(t.Context(), d.run, everything())
		require.Nil(t, trouble)
		assert.EqualValues(t, keys, found.keys)
		assert.EqualValues(t, 14*keys, found.bytes)
		whole := &sum{}
		version, records, trouble := snapshot(t.Context(), d.run, []contract.FDBRangeRecord{everything()})
		require.Nil(t, trouble)
		assert.EqualValues(t, 77, version)
		assert.Equal(t, found.record(everything()), records[0], "pages and one transaction give the same digest")
		assert.Equal(t, keys == 0, records[0].Digest == whole.record(everything()).Digest)
	}
}

func TestPagesGetSmallerWhereValuesAreLong(t *testing.T) {
	d := filled(2500)
	d.most = 40
	found, trouble := scan(t.Context(), d.run, everything())
	require.Nil(t, trouble)
	assert.EqualValues(t, 2500, found.keys)

	d.most = 0 // not even one key
	_, trouble = scan(t.Context(), d.run, everything())
	require.NotNil(t, trouble)
	assert.Equal(t, contract.FDBClassTooMuch, trouble.Class)
}

func TestOnlyTheKeysOfARangeAreRead(t *testing.T) {
	d := filled(100)
	_, records, trouble := snapshot(t.Context(), d.run, []contract.FDBRangeRecord{
		{Name: "few", Start: "k000010", End: "k000013"}, {Name: "none", Start: "x", End: "y"},
	})
	require.Nil(t, trouble)
	assert.EqualValues(t, 3, records[0].Keys)
	assert.EqualValues(t, 0, records[1].Keys)
	assert.Len(t, d.calls, 1, "one transaction")
	found, trouble := scan(t.Context(), d.run, contract.FDBRangeRecord{Start: "k000010", End: "k000013"})
	require.Nil(t, trouble)
	assert.Equal(t, records[0].Digest, found.record(contract.FDBRangeRecord{}).Digest)
}

func TestARangeWithTooManyKeysIsNotRecorded(t *testing.T) {
	d := filled(maxRecorded + 1)
	_, records, trouble := snapshot(t.Context(), d.run, []contract.FDBRangeRecord{everything()})
	require.Nil(t, trouble)
	assert.Empty(t, records[0].Digest)
	assert.Contains(t, records[0].Unread, "more than 100000 keys")
}

// It is FoundationDB's own definition, computed by another program.
func TestADigestIsTheSumOfHashesOfKeysAndValues(t *testing.T) {
	pairs := []restoretool.KeyValue{
		{Key: []byte("a"), Value: []byte("1")}, {Key: []byte("b"), Value: []byte("2")}, {Key: []byte{0, 0xff}},
	}
	whole, parts := &sum{}, &sum{}
	whole.add(pairs)
	for _, pair := range slices.Backward(pairs) {
		parts.add([]restoretool.KeyValue{pair})
	}
	const want = "0e923e618a20192e07e52cc872d6c2fbc706a55d25c1fc8ee2eaca1bfce5cd92"
	assert.Equal(t, want, whole.record(everything()).Digest)
	assert.Equal(t, want, parts.record(everything()).Digest)
}

// The digest is of keys and values, not of their bytes in a row.
func TestOtherContentsHaveOtherDigests(t *testing.T) {
	sums := map[string]bool{}
	for _, pair := range [][2]string{{"ab", "c"}, {"a", "bc"}, {"abc", ""}, {"ab", "d"}} {
		d := &database{answer: func(string) ([]byte, *contract.FDBFailure) {
			return fmt.Appendf(nil, "\nRange limited to 5 keys\n`%s' is `%s'\n", pair[0], pair[1]), nil
		}}
		found, trouble := scan(t.Context(), d.run, everything())
		require.Nil(t, trouble)
		sums[found.record(everything()).Digest] = true
	}
	assert.Len(t, sums, 4)
}

func TestWhatFdbcliSaysOtherwiseIsAFailure(t *testing.T) {
	for name, output := range map[string]string{
		"two ways to read it": "\nRange limited to 5 keys\n`a' is `b' is `c'\n",
		"no range":            "ERROR: odd\n",
	} {
		d := &database{answer: func(string) ([]byte, *contract.FDBFailure) { return []byte(output), nil }}
		_, trouble := scan(t.Context(), d.run, everything())
		require.NotNil(t, trouble, name)
		_, _, trouble = snapshot(t.Context(), d.run, []contract.FDBRangeRecord{everything()})
		require.NotNil(t, trouble, name)
	}
}
