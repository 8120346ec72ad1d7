package drill

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"

	"holdfast.dev/holdfast/activities/fdb/restore"
	"holdfast.dev/holdfast/activities/fdb/tools"
	"holdfast.dev/holdfast/activities/fdbtool"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/k8s/fdb/restoretool"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// firstPage is how many keys are read at first, and largestPage at most: fewer where they are too much for one answer.
	firstPage   = 1000
	largestPage = 20000
	// pageBytes is about how much a page holds.
	pageBytes = 2 << 20
	// maxRecorded is how many keys of a range are recorded: they are read in one transaction, of 5 s at most.
	maxRecorded = 100_000
)

// runner runs a tool.
type runner func(ctx context.Context, operation fdbtool.Operation, args []string) ([]byte, *contract.FDBFailure)

// sum counts keys and values, and adds up their hashes. It does not depend on the order, nor on how a range is read in pieces:
// FoundationDB's own range digest of 8.0 (audit_storage range_digest) is defined so.
type sum struct {
	keys, bytes int64
	digest      big.Int
}

func (s *sum) add(pairs []restoretool.KeyValue) {
	var term big.Int
	for _, pair := range pairs {
		s.keys++
		s.bytes += int64(len(pair.Key) + len(pair.Value))
		s.digest.Add(&s.digest, term.SetBytes(hashOf(pair)))
	}
	s.digest.And(&s.digest, modulo)
}

// modulo keeps a digest below 2^256.
var modulo = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 8*sha256.Size), big.NewInt(1))

// hashOf is the SHA-256 of key and value, each after its length as an unsigned big-endian number of 32 bits.
func hashOf(pair restoretool.KeyValue) []byte {
	hash := sha256.New()
	for _, part := range [][]byte{pair.Key, pair.Value} {
		var length [4]byte
		binary.BigEndian.PutUint32(length[:], uint32(len(part))) //nolint:gosec // FoundationDB's limits are 10 kB and 100 kB
		_, _ = hash.Write(length[:])                             // a hash returns no error
		_, _ = hash.Write(part)
	}
	return hash.Sum(nil)
}

// record is what was counted, of a range.
func (s *sum) record(of contract.FDBRangeRecord) contract.FDBRangeRecord {
	of.Keys, of.Bytes, of.Digest = s.keys, s.bytes, hex.EncodeToString(s.digest.FillBytes(make([]byte, sha256.Size)))
	return of
}

// bounds are the keys of a range as arguments of fdbcli.
func bounds(of contract.FDBRangeRecord) string {
	if of.Start == "" {
		return `"" ` + fdb.RangeArgument(of.End)
	}
	return fdb.RangeArgument(of.Start + " " + of.End)
}

// scan reads a range in pages, each in a transaction of its own: nobody writes there meanwhile.
func scan(ctx context.Context, run runner, of contract.FDBRangeRecord) (*sum, *contract.FDBFailure) {
	found, keys, page := &sum{}, bounds(of), firstPage
	_, end := splitBounds(keys)
	for {
		pairs, trouble := readPage(ctx, run, keys, page)
		switch {
		case trouble != nil && ctx.Err() == nil && (page > firstPage || (page > 1 && trouble.Class == contract.FDBClassTooMuch)):
			page = max(1, page/4) //nolint:mnd // values may be a hundred times as long as those before
			continue
		case trouble != nil:
			return nil, trouble
		}
		before := found.bytes
		found.add(pairs)
		if len(pairs) < page {
			return found, nil
		}
		last := pairs[len(pairs)-1].Key
		keys = restoretool.KeyArgument(append(bytes.Clone(last), 0)) + " " + end
		each := (found.bytes-before)/int64(len(pairs)) + 1
		page = max(1, min(largestPage, 2*page, int(pageBytes/each)))
	}
}

func splitBounds(keys string) (start, end string) {
	at := bytes.LastIndexByte([]byte(keys), ' ')
	return keys[:at], keys[at+1:]
}

func readPage(ctx context.Context, run runner, keys string, limit int) ([]restoretool.KeyValue, *contract.FDBFailure) {
	args := append([]string{"--exec", fmt.Sprintf("getrange %s %d", keys, limit)}, restore.AnswerLimit...)
	output, trouble := run(ctx, fdbtool.ReadRange, args)
	if trouble != nil {
		return nil, trouble
	}
	ranges, whole, err := restoretool.ParseRanges(output)
	switch {
	case err != nil:
		return nil, tools.OtherFailure("%s", err)
	case !whole:
		return nil, tools.OtherFailure("%s", restoretool.ErrAmbiguous)
	}
	return ranges[0], nil
}

// snapshot reads a range in one transaction, with the version at which it was read. A range that has too many keys for that is
// returned with the reason.
func snapshot(
	ctx context.Context, run runner, of []contract.FDBRangeRecord,
) (version int64, records []contract.FDBRangeRecord, trouble *contract.FDBFailure) {
	commands := "begin; getversion"
	for _, one := range of {
		commands += fmt.Sprintf("; getrange %s %d", bounds(one), maxRecorded+1)
	}
	output, trouble := run(ctx, fdbtool.ReadRange, append([]string{"--exec", commands + "; reset"}, restore.AnswerLimit...))
	if trouble != nil {
		return 0, nil, trouble
	}
	version, err := restoretool.ParseVersion(output)
	if err != nil {
		return 0, nil, tools.OtherFailure("%s", err)
	}
	ranges, whole, err := restoretool.ParseRanges(output)
	switch {
	case err != nil:
		return 0, nil, tools.OtherFailure("%s", err)
	case !whole:
		return 0, nil, tools.OtherFailure("%s", restoretool.ErrAmbiguous)
	case len(ranges) != len(of):
		return 0, nil, tools.OtherFailure("fdbcli has read %d ranges instead of %d", len(ranges), len(of))
	}
	for i, pairs := range ranges {
		record := of[i]
		if len(pairs) > maxRecorded {
			record.Unread = fmt.Sprintf("it has more than %d keys, too many to read them at one version", maxRecorded)
		} else {
			counted := &sum{}
			counted.add(pairs)
			record = counted.record(record)
		}
		records = append(records, record)
	}
	return version, records, nil
}
