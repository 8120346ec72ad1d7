package restoretool

import (
	"bytes"
	"encoding/hex"
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// KeyValue is a key with its value.
type KeyValue struct{ Key, Value []byte }

// between is what fdbcli prints between a key and its value. Both may hold it, too.
const between = "' is `"

// ErrAmbiguous says that keys or values hold what fdbcli prints between them: where the next page begins is not known.
var ErrAmbiguous = errors.New("a key or value holds \"" + between + "\", by which fdbcli's answer cannot be read")

var (
	errNoRange = errors.New("the answer of fdbcli getrange is not a list of keys and values")
	// readVersion matches what `getversion` prints in a line of its own.
	readVersion = regexp.MustCompile(`(?m)^([0-9]+)$`)
)

// ParseVersion reads the version of the database that fdbcli's `getversion` prints, before any keys.
func ParseVersion(output []byte) (int64, error) {
	head, _, _ := bytes.Cut(output, []byte(rangeHead))
	match := readVersion.FindSubmatch(head)
	if match == nil {
		return 0, errors.New("fdbcli does not say which version of the database it has read")
	}
	version, err := strconv.ParseInt(string(match[1]), 10, 64)
	if err != nil || version <= 0 {
		return 0, errors.New("fdbcli's version of the database is no number")
	}
	return version, nil
}

// ParseRanges reads the output of one or more `getrange` of fdbcli: the keys and values of each. In a line that can be read in
// two ways the key is taken for as short as possible; whole says that there is none.
func ParseRanges(output []byte) (ranges [][]KeyValue, whole bool, err error) {
	parts := strings.Split(string(output), "\n"+rangeHead)
	if len(parts) < 2 { //nolint:mnd // before the first range and after it
		return nil, false, errNoRange
	}
	whole = true
	for _, part := range parts[1:] {
		found, alone, err := parseRange(part)
		if err != nil {
			return nil, false, err
		}
		ranges, whole = append(ranges, found), whole && alone
	}
	return ranges, whole, nil
}

func parseRange(part string) (found []KeyValue, whole bool, err error) {
	whole = true
	for line := range strings.SplitSeq(part, "\n") {
		if !strings.HasPrefix(line, "`") {
			continue
		}
		text, quoted := strings.CutSuffix(line[1:], "'")
		key, value, split := strings.Cut(text, between)
		if !quoted || !split {
			return nil, false, errNoRange
		}
		whole = whole && !strings.Contains(value, between)
		var pair KeyValue
		if pair.Key, err = unescape(key); err != nil {
			return nil, false, err
		}
		if pair.Value, err = unescape(value); err != nil {
			return nil, false, err
		}
		found = append(found, pair)
	}
	return found, whole, nil
}

// unescape reads bytes as FoundationDB prints them.
func unescape(text string) ([]byte, error) {
	if !strings.Contains(text, `\`) {
		return []byte(text), nil
	}
	read := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			read = append(read, text[i])
			continue
		}
		rest := text[i+1:]
		if strings.HasPrefix(rest, `\`) {
			read = append(read, '\\')
			i++
			continue
		}
		const digits = 2
		if len(rest) <= digits || rest[0] != 'x' {
			return nil, errNoRange
		}
		one, err := hex.DecodeString(rest[1 : 1+digits])
		if err != nil {
			return nil, errNoRange
		}
		read = append(read, one...)
		i += 1 + digits
	}
	return read, nil
}

// KeyArgument writes a key so that fdbcli reads it, whatever is in it.
func KeyArgument(key []byte) string {
	if len(key) == 0 {
		return `""`
	}
	var text strings.Builder
	for _, b := range key {
		text.WriteString(`\x` + hex.EncodeToString([]byte{b}))
	}
	return text.String()
}

// Within reports whether a range of keys lies within another one, both as FoundationDB prints keys.
func Within(start, end, outerStart, outerEnd string) bool {
	compare := func(a, b string) int {
		first, errA := unescape(strings.Trim(a, `"`))
		second, errB := unescape(strings.Trim(b, `"`))
		if errA != nil || errB != nil {
			return 1 // nothing is within what cannot be read
		}
		return bytes.Compare(first, second)
	}
	return compare(outerStart, start) <= 0 && compare(end, outerEnd) <= 0
}
