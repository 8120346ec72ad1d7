package download

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/workflows/contract"
)

func TestDownloadStepsAreSafe(t *testing.T) {
	bits := func(n, i int) bool { return n>>i&1 == 1 }
	for n := range 1 << 9 {
		v := contract.DownloadView{
			Found: bits(n, 0), BeingDeleted: bits(n, 1), Expired: bits(n, 2), Validated: bits(n, 3), Refused: bits(n, 4),
			Answered: bits(n, 5),
			Velero:   contract.VeleroDownloadView{Exists: bits(n, 6), Current: bits(n, 7), Signed: bits(n, 8)},
		}
		if Settled(v) {
			continue
		}
		switch next(v) {
		case contract.RequestDownload, contract.RefreshDownload:
			require.True(t, v.Found && !v.BeingDeleted && !v.Expired && !v.Answered, "%+v", v)
		case contract.RemoveDownload:
			require.True(t, !v.Found || v.BeingDeleted || v.Expired, "%+v", v)
		case wait:
			require.True(t, v.Velero.Exists && v.Velero.Current && !v.Velero.Signed, "there is somebody to wait for: %+v", v)
		}
	}
}
