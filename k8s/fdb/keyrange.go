package fdb

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// KeyRange is the keys from Start up to End, without End.
type KeyRange struct{ Start, End []byte }

// ParseKey reads a key as FoundationDB's tools print it: \xNN is a byte, two backslashes are one, and all else is itself.
func ParseKey(text string) ([]byte, error) {
	var key []byte
	for rest := text; rest != ""; {
		literal, escape, escapes := strings.Cut(rest, `\`)
		key = append(key, literal...)
		if !escapes {
			break
		}
		switch {
		case strings.HasPrefix(escape, `\`):
			key, rest = append(key, '\\'), escape[1:]
		case len(escape) >= 3 && escape[0] == 'x':
			one, err := hex.DecodeString(escape[1:3])
			if err != nil {
				return nil, fmt.Errorf(`key %s: \%s is not a byte: must be \x and two hexadecimal digits`, Bound(text, 64), escape[:3])
			}
			key, rest = append(key, one...), escape[3:]
		default:
			return nil, fmt.Errorf("key %s: after a backslash must be another one, or x and two hexadecimal digits", Bound(text, 64))
		}
	}
	return key, nil
}

// ParseKeyRanges reads ranges of keys, each as "start end". It returns them sorted, and as one where they meet; an error says
// which cannot be backed up, and why. Of these fdbbackup 7.3 refuses only a start that comes after its end: where both are the
// same it backs up nothing, and after an escape that it cannot read other keys, or all.
func ParseKeyRanges(texts []string) ([]KeyRange, error) {
	var ranges []KeyRange
	for _, text := range texts {
		one, err := parseKeyRange(text)
		if err != nil {
			return nil, err
		}
		ranges = append(ranges, one)
	}
	slices.SortFunc(ranges, func(a, b KeyRange) int { return bytes.Compare(a.Start, b.Start) })
	var merged []KeyRange
	for _, each := range ranges {
		last := len(merged) - 1
		if last < 0 || bytes.Compare(merged[last].End, each.Start) < 0 {
			merged = append(merged, each)
			continue
		}
		merged[last].End = slices.MaxFunc([][]byte{merged[last].End, each.End}, bytes.Compare)
	}
	return merged, nil
}

func parseKeyRange(text string) (KeyRange, error) {
	startText, endText, _ := strings.Cut(text, " ")
	start, startErr := ParseKey(startText)
	end, endErr := ParseKey(endText)
	if err := cmp.Or(startErr, endErr); err != nil {
		return KeyRange{}, err
	}
	if bytes.Compare(start, end) >= 0 {
		return KeyRange{}, fmt.Errorf("range %s: its start must come before its end", Bound(text, 128))
	}
	return KeyRange{Start: start, End: end}, nil
}

// SameKeys reports whether two lists of ranges are of the same keys, in whichever letters and order. No range means all keys.
func SameKeys(a, b []string) bool {
	if slices.Equal(a, b) {
		return true
	}
	first, err := ParseKeyRanges(a)
	second, otherErr := ParseKeyRanges(b)
	same := func(x, y KeyRange) bool { return bytes.Equal(x.Start, y.Start) && bytes.Equal(x.End, y.End) }
	return err == nil && otherErr == nil && slices.EqualFunc(first, second, same)
}
