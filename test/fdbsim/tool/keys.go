package tool

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/test/fdbsim/state"
)

// defaultRanges are what a backup or restore without -k covers: all keys, and some of the system's.
func defaultRanges() []state.Range {
	var ranges []state.Range
	for _, r := range [][2]string{
		{"", "\xff"},
		{"\xff\x02/blobRange/", "\xff\x02/blobRange0"},
		{"\xff/metacluster/clusterRegistration", "\xff/metacluster/clusterRegistration\x00"},
		{"\xff/tagQuota/", "\xff/tagQuota0"},
		{"\xff/tenant/", "\xff/tenant0"},
	} {
		ranges = append(ranges, state.Range{Begin: []byte(r[0]), End: []byte(r[1])})
	}
	return ranges
}

// Printable writes a key as the tools do.
func Printable(key []byte) string {
	var b strings.Builder
	for _, c := range key {
		switch {
		case c == '\\':
			b.WriteString(`\\`)
		case c >= 32 && c < 127:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}

var errKey = errors.New("bad escape in key")

// ParseKey reads a printable key.
func ParseKey(text string) ([]byte, error) {
	key := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			key = append(key, text[i])
			continue
		}
		switch {
		case strings.HasPrefix(text[i:], `\x`) && i+3 < len(text):
			c, err := strconv.ParseUint(text[i+2:i+4], 16, 8)
			if err != nil {
				return nil, errKey
			}
			key = append(key, byte(c))
			i += 3
		case i+1 < len(text):
			i++
			key = append(key, text[i])
		default:
			return nil, errKey
		}
	}
	return key, nil
}

// ranges reads what -k says; nothing for none.
func (r *run) ranges() ([]state.Range, error) {
	var all []state.Range
	for _, list := range r.options["-k"] {
		for text := range strings.SplitSeq(list, ";") {
			if text = strings.TrimSpace(text); text == "" {
				continue
			}
			found, problem := parseRange(text)
			if problem != "" {
				return nil, exit(1, fmt.Sprintf("ERROR: Invalid key range `%s' reported error %s", text, problem), r.teaser())
			}
			all = append(all, found)
		}
	}
	return all, nil
}

func parseRange(text string) (state.Range, string) {
	from, to, pair := strings.Cut(text, " ")
	begin, err := ParseKey(strings.Trim(from, `"`))
	if err != nil {
		return state.Range{}, "Invalid escape"
	}
	end := state.Next(begin)
	if pair {
		if end, err = ParseKey(strings.Trim(strings.TrimSpace(to), `"`)); err != nil {
			return state.Range{}, "Invalid escape"
		}
	}
	if string(begin) > string(end) {
		return state.Range{}, "Range begin key larger than end key"
	}
	return state.Range{Begin: begin, End: end}, ""
}
