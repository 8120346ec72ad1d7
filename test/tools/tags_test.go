package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuildTagsDecideWhatIsBuilt(t *testing.T) {
	b := sampleBuilder(t)
	file := filepath.Join(b.toolsDir, "sample", "hello", "small.go")
	require.NoError(t, os.WriteFile(file, []byte("//go:build small\n\npackage main\n\nfunc init() { version = \"small\" }\n"), 0o600))
	plain, err := b.build(t.Context(), []string{"hello"}, nil)
	require.NoError(t, err)
	for i := range b.catalog {
		b.catalog[i].tags = "small"
	}
	small, err := b.build(t.Context(), []string{"hello"}, nil)
	require.NoError(t, err)
	require.NotEqual(t, plain["hello"], small["hello"], "two binaries, two places in the cache")
	for path, want := range map[string]string{plain["hello"]: "hello devel\n", small["hello"]: "hello small\n"} {
		out, err := exec.CommandContext(t.Context(), path).CombinedOutput()
		require.NoError(t, err)
		require.Equal(t, want, string(out))
	}
}
