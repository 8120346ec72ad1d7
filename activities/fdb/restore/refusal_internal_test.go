package restore

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/workflows/contract"
)

func TestARefusalSaysWhatCanBeRestored(t *testing.T) {
	snapshots := contract.FDBContainer{ // as FoundationDB describes a small backup whose last snapshots are newer than its log
		Oldest: &contract.FDBPoint{Version: 50_520_051, Time: 1795978862}, Latest: &contract.FDBPoint{Version: 115_716_970, Time: 1795978927},
		LogEnd: &contract.FDBPoint{Version: 100_986_222, Time: 1795978912},
	}
	logged := snapshots
	logged.LogEnd = &contract.FDBPoint{Version: 115_716_971, Time: 1795978927}
	const reach = "version 50520051 (about 2026-11-29T19:01:02Z) to version 115716970 (about 2026-11-29T19:02:07Z)"
	for title, test := range map[string]struct {
		container contract.FDBContainer
		version   int64
		want      string
	}{
		"before the oldest": {snapshots, 50_520_050, "it cannot be restored: the backup reaches from " + reach},
		"after the latest":  {snapshots, 115_716_971, "it cannot be restored: the backup reaches from " + reach},
		"between the end of the log and the last snapshot": {
			snapshots, 100_986_222, "it cannot be restored: the backup's log has no gap up to version 100986222 (about " +
				"2026-11-29T19:01:52Z). Of what is later only whole snapshots can be restored, the last one at version 115716970 (about " +
				"2026-11-29T19:02:07Z). Restore an earlier point, or wait while the backup runs: FoundationDB writes its log in files of " +
				"about 20 s",
		},
		"within the log": {
			snapshots, 100_986_221, "it cannot be restored, although the backup reaches from " + reach +
				": FoundationDB lacks files for it. Restore another point",
		},
		"all is logged": {
			logged, 115_716_970, "it cannot be restored, although the backup reaches from " + reach +
				": FoundationDB lacks files for it. Restore another point",
		},
	} {
		t.Run(title, func(t *testing.T) {
			trouble := refused(test.container, test.version, "it")
			assert.Equal(t, contract.FDBClassNotRestorable, trouble.Class)
			assert.Equal(t, test.want, trouble.Message)
		})
	}
}
