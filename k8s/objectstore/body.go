package objectstore

import (
	"context"
	"io"
	"net/http"
)

// maxBodyBytes limits the answer to a request whose body the driver reads whole: a list, an error.
const maxBodyBytes = 2 << 20

type bounded struct{}

// boundBodies has BoundBodies limit the answers to the requests of a context.
func boundBodies(ctx context.Context) context.Context { return context.WithValue(ctx, bounded{}, true) }

// BoundBodies limits answers as they are read. What a server answers with an error is limited always; what it answers to a
// request for a file is the reader's to limit.
func BoundBodies(transport http.RoundTripper) http.RoundTripper { return boundTransport{transport} }

type boundTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t boundTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(request)
	if err == nil && (answer.StatusCode >= http.StatusMultipleChoices || request.Context().Value(bounded{}) != nil) {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{&limited{from: answer.Body, left: maxBodyBytes}, answer.Body}
	}
	return answer, err
}
