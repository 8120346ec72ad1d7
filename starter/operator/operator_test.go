package operator_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/starter/operator"
)

// Tenants write what is printed. It is all there, and steers no terminal.
func TestWhatIsPrintedSteersNoTerminal(t *testing.T) {
	t.Parallel()
	written := map[string]string{"a": "x\u009b2J\x7f\x1b[2J ü"}
	for _, output := range []string{"json", "yaml"} {
		flags := operator.Flags{Output: output}
		var out bytes.Buffer
		require.NoError(t, flags.Print(&out, written, nil))
		for _, control := range []string{"\u009b", "\x7f", "\x1b"} {
			assert.NotContains(t, out.String(), control, output)
		}
		var read map[string]string
		require.NoError(t, yaml.Unmarshal(out.Bytes(), &read)) // which reads JSON, too
		assert.Equal(t, written, read, output)
	}
}
