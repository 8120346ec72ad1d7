package main

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/process"
)

func TestTimeoutsAreChecked(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string // the error; none if empty
	}{
		"the default":       {nil, ""},
		"the shortest":      {[]string{"--velero-stall-timeout=15s"}, ""},
		"too short":         {[]string{"--velero-stall-timeout=14s"}, "--velero-stall-timeout: must be a duration of at least 15s"},
		"no readiness":      {[]string{"--restore-ready-timeout=0"}, "--restore-ready-timeout: must be a duration of more than zero"},
		"none":              {[]string{"--velero-stall-timeout=0"}, "--velero-stall-timeout: must be a duration of at least 15s"},
		"of all workers":    {[]string{"--cluster-id=We/st"}, "--cluster-id: must be " + process.ClusterIDFormat},
		"the queue of all":  {[]string{"--cluster-id=shared"}, "--cluster-id: must be " + process.ClusterIDFormat},
		"a queue of tools":  {[]string{"--cluster-id=fdb-west"}, "--cluster-id: must be " + process.ClusterIDFormat},
		"no snapshot ever":  {[]string{"--fdb-initial-snapshot-limit=0"}, "--fdb-initial-snapshot-limit: must be a number of at least 1"},
		"no patience":       {[]string{"--fdb-initial-snapshot-timeout=0"}, "--fdb-initial-snapshot-timeout: must be a duration of more than zero"},
		"looks without end": {[]string{"--fdb-status-interval=10ms"}, "--fdb-status-interval: must be a duration of at least 1s"},
		"no expirations":    {[]string{"--fdb-expiry-concurrency=0"}, "--fdb-expiry-concurrency: must be a number of at least 1"},
		"no wait for a turn": {
			[]string{"--fdb-expiry-retry-interval=10ms"}, "--fdb-expiry-retry-interval: must be a duration of at least 1s",
		},
		"turns without end": {[]string{"--fdb-expiry-min-interval=0"}, "--fdb-expiry-min-interval: must be a duration of at least 1s"},
		"no time to expire": {[]string{"--fdb-expiry-timeout=0"}, "--fdb-expiry-timeout: must be a duration of at least 1s"},
		"the shortest turns": {
			[]string{"--fdb-expiry-retry-interval=1s", "--fdb-expiry-min-interval=1s", "--fdb-expiry-timeout=1s"}, "",
		},
		"who decides, always": {[]string{"--approve-through-temporal=always"}, ""},
		"who decides, never":  {[]string{"--approve-through-temporal=never"}, ""},
		"who decides, by a boolean": {
			[]string{"--approve-through-temporal=false"}, "--approve-through-temporal: must be auto, always or never",
		},
		"who decides, nobody":   {[]string{"--approve-through-temporal="}, "--approve-through-temporal: must be auto, always or never"},
		"ports of the cage":     {[]string{"--fdb-cage-ports=4500-4599,4689"}, ""},
		"no ports of the cage":  {[]string{"--fdb-cage-ports="}, ""},
		"all ports of the cage": {[]string{"--fdb-cage-ports=1-65535"}, "--fdb-cage-ports: must be ports and ranges of ports, like 4500-4599,4689, and at most 1024 ports"},
		"a relative folder":     {[]string{"--fdb-cage-folders=/x,y"}, `--fdb-cage-folders: must be absolute paths, not "y"`},
		"no folder of tools": {
			[]string{"--fdb-bin-dir=/does/not/exist"}, `--fdb-bin-dir: "/does/not/exist" is not a folder`,
		},
		"FoundationDB alone":     {[]string{"--serve=fdb", "--fdb-bin-dir=."}, ""},
		"no tools but for tools": {[]string{"--serve=fdb"}, "--fdb-bin-dir: must be the folder with FoundationDB's tools, which --serve=fdb needs"},
		"Velero alone":           {[]string{"--serve=velero", "--fdb-bin-dir=/does/not/exist"}, ""},
		"an unknown half":        {[]string{"--serve=both"}, "--serve: must be velero, fdb, drills or all"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			var flags workerFlags
			set := pflag.NewFlagSet("worker", pflag.ContinueOnError)
			flags.Bind(set)
			require.NoError(t, set.Parse(test.args))
			if test.want == "" {
				require.NoError(t, flags.Validate())
				assert.GreaterOrEqual(t, flags.VeleroStallTimeout, 15*time.Second)
				return
			}
			require.EqualError(t, flags.Validate(), test.want)
		})
	}
}
