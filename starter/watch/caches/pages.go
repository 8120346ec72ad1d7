package caches

import (
	"context"
	"io"
	"net/http"

	"golang.org/x/net/http2"
)

const (
	// smallestPage is how many objects are in a page that is read however large it is. One object takes up to 1.5 MB on the wire
	// and, if its selectors are empty, some 16 MB decoded: such a page takes at most 80 MB.
	smallestPage = 5
	// largestPage is how many objects are in a page at most.
	largestPage = 500
	// pageBytes is how large a page is to be on the wire. One of more than pageLimit is read no further, and requested again with
	// fewer objects: tooLargeDivisor divides their number. A page of pageLimit takes up to 110 MB decoded.
	pageBytes       = 4 << 20
	pageLimit       = 2 * pageBytes
	tooLargeDivisor = 8
)

// nextPage is how many objects the next page is to have, by the size of the last one: at most twice as many, since the largest
// objects may follow small ones. What was not measured does not grow.
func nextPage(objects int, last answer) int {
	switch {
	case last.tooLarge:
		return max(smallestPage, objects/tooLargeDivisor)
	case last.bytes == 0:
		return smallestPage
	}
	return min(max(smallestPage, min(2*objects, objects*pageBytes/last.bytes)), largestPage)
}

// answer is the body of an answer to a request with that context value: how large it is, decompressed, and how large it may be
// (0: any size).
type answer struct {
	limit, bytes int
	// tooLarge: the body was larger, and was read no further.
	tooLarge bool
}

type answerKey struct{}

func measured(ctx context.Context, of *answer) context.Context {
	return context.WithValue(ctx, answerKey{}, of)
}

// MeasurePages is a wrapper for the transport of the informers' client, see rest.Config. Without it their pages have 5 objects.
func MeasurePages(transport http.RoundTripper) http.RoundTripper { return measuring{transport} }

type measuring struct{ http.RoundTripper }

func (m measuring) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := m.RoundTripper.RoundTrip(request)
	if of, is := request.Context().Value(answerKey{}).(*answer); err == nil && is {
		of.bytes = 0
		response.Body = body{response.Body, of}
	}
	return response, err
}

// WrappedRoundTripper lets client-go reach what is inside.
func (m measuring) WrappedRoundTripper() http.RoundTripper { return m.RoundTripper }

type body struct {
	io.ReadCloser
	of *answer
}

// Read ends a body that is too large with the error of a closed stream, of which client-go makes no error in the log.
func (b body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.of.bytes += n
	if b.of.limit > 0 && b.of.bytes > b.of.limit {
		b.of.tooLarge = true
		return n, http2.StreamError{Code: http2.ErrCodeCancel}
	}
	return n, err
}
