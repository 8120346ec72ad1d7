package size

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rows are the table of coefficients in docs/capacity.md, each in a unit of its own.
var rows = []struct {
	title string
	of    Quantity
	units float64
}{
	{"CPU ms: worker", WorkerCPU, 1e3},
	{"watchers together", WatcherCPU, 1e3},
	{"Temporal's services", TemporalCPU, 1e3},
	{"PostgreSQL", DatabaseCPU, 1e3},
	{"API server", APIServerCPU, 1e3},
	{"etcd", EtcdCPU, 1e3},
	{"requests of the workers at the API server", Requests, 1},
	{"requests at Temporal's frontend", FrontendRequests, 1},
	{"SQL statements", Statements, 1},
	{"transactions that write", Transactions, 1},
	{"kB of write-ahead log", LogBytes, 1e-3},
	{"kB of Temporal's database", DatabaseBytes, 1e-3},
}

func TestTheDocumentIsAsTheModel(t *testing.T) {
	document, err := os.ReadFile("../../docs/capacity.md")
	require.NoError(t, err)
	require.Len(t, rows, int(quantities))
	for _, row := range rows {
		line := "| " + row.title + " |"
		for _, needs := range []Needs{idle, alone, ofBackup, ofDeletion, ofRun} {
			line += fmt.Sprintf(" %.3g |", needs[row.of]*row.units)
		}
		assert.Contains(t, string(document), line)
	}
	_, after, _ := strings.Cut(string(document), "\n$ holdfast size ")
	arguments, shown, _ := strings.Cut(after, "\n")
	shown, _, _ = strings.Cut(shown, "```")
	require.NotEmpty(t, shown)
	assert.Equal(t, printed(t, strings.Fields(arguments)...), shown)
}
