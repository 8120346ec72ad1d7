//go:build linux

package cage

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatAKernelLacksIsSaid(t *testing.T) {
	for version, want := range map[int]string{
		0: "this kernel has no Landlock, or it is not switched on: FoundationDB's tools reach every file, process and port that the worker reaches",
		2: "this kernel's Landlock (ABI 2; 4 is required: Linux 6.7) does not keep FoundationDB's tools from connecting to any port and " +
			"from emptying any file that the worker may write",
		3: "this kernel's Landlock (ABI 3; 4 is required: Linux 6.7) does not keep FoundationDB's tools from connecting to any port",
	} {
		require.EqualError(t, lacking(version), want)
	}
	for _, version := range []int{4, 7, 99} {
		assert.NoError(t, lacking(version))
	}
}
