package fdbtool

import "bytes"

// bounded keeps the beginning of what is written to it, or the end. It drops the rest, and never blocks the writer.
type bounded struct {
	limit int
	// end: the end is kept, at least limit bytes of it.
	end     bool
	kept    bytes.Buffer
	dropped bool
}

func (b *bounded) Write(data []byte) (int, error) {
	written := len(data)
	if b.end {
		b.kept.Write(data)
		if b.kept.Len() > 2*b.limit {
			b.kept.Next(b.kept.Len() - b.limit)
			b.dropped = true
		}
		return written, nil
	}
	room := min(written, b.limit-b.kept.Len())
	b.dropped = b.dropped || room < written
	b.kept.Write(data[:room])
	return written, nil
}
