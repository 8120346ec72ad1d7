package objectstore

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// A store may be the tenant's own program, which answers without end.
func TestAnswersThatAreReadWholeAreBounded(t *testing.T) {
	chunk := make([]byte, 1<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/error" {
			w.WriteHeader(http.StatusForbidden)
		}
		for range 2 * maxBodyBytes / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: BoundBodies(http.DefaultTransport)}
	for name, tt := range map[string]struct {
		path    string
		bounded bool
		want    error
	}{
		"a file is its reader's to limit": {"/file", false, nil},
		"a list":                          {"/list", true, errTooLarge},
		"an error":                        {"/error", false, errTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if tt.bounded {
				ctx = boundBodies(ctx)
			}
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+tt.path, nil)
			require.NoError(t, err)
			answer, err := client.Do(request)
			require.NoError(t, err)
			defer answer.Body.Close()
			_, err = io.Copy(io.Discard, answer.Body)
			if tt.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, tt.want)
		})
	}
}
