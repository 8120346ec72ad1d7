package tools

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestDue(t *testing.T) {
	const (
		here   = "blobstore://lab@s3.local/lab-1?bucket=backups&region=r&sc=0"
		same   = "blobstore://lab@s3.local/lab-1?bucket=backups&sc=0&region=r"
		tuned  = "blobstore://lab@s3.local/lab-1?bucket=backups&region=r&sc=1"
		there  = "blobstore://lab@s3.local/lab-2?bucket=backups&region=r&sc=0"
		others = "blobstore://victim@s3.local/lab-1?bucket=backups&region=r&sc=0"
		file   = "file:///backups/backup-1"
	)
	running := func(state, url string, period int64) fdb.Status {
		return fdb.Status{Tag: contract.FDBTag{State: state, Running: true, URL: url, SnapshotPeriodSeconds: period}}
	}
	ended := func(state, url string) fdb.Status { return fdb.Status{Tag: contract.FDBTag{State: state, URL: url}} }
	cases := map[string]struct {
		operation contract.FDBOperation
		url       string
		status    fdb.Status
		want      dueness
	}{
		"start: nothing ever ran":             {contract.FDBStart, here, ended("NeverRan", ""), commandDue},
		"start: one ran here and was aborted": {contract.FDBStart, here, ended("Aborted", here), commandDue},
		"start: it is submitted":              {contract.FDBStart, here, running("Submitted", here, 0), commandDone},
		"start: it runs, written otherwise":   {contract.FDBStart, here, running("Running", same, 60), commandDone},
		"start: it runs with others' tuning":  {contract.FDBStart, here, running("Running", tuned, 60), commandDone},
		"start: one runs elsewhere":           {contract.FDBStart, here, running("RunningDifferentially", there, 60), commandStale},
		"start: one runs of another account":  {contract.FDBStart, here, running("Running", others, 60), commandStale},
		"start: one runs into a file":         {contract.FDBStart, here, running("Running", file, 60), commandStale},
		"start: one is half aborted":          {contract.FDBStart, here, running("Aborting", here, 0), commandStale},
		"modify: all as desired":              {contract.FDBModify, same, running("Running", here, 60), commandDone},
		"modify: the period differs":          {contract.FDBModify, here, running("Running", here, 61), commandDue},
		"modify: the period is not shown":     {contract.FDBModify, here, running("Running", here, 0), commandDone},
		"modify: the parameters differ":       {contract.FDBModify, tuned, running("RunningDifferentially", here, 60), commandDue},
		"modify: it is only submitted":        {contract.FDBModify, tuned, running("Submitted", here, 0), commandStale},
		"modify: another place":               {contract.FDBModify, there, running("Running", here, 61), commandStale},
		"modify: nothing runs":                {contract.FDBModify, here, ended("Completed", here), commandStale},
		"abort: it runs":                      {contract.FDBAbort, here, running("RunningDifferentially", here, 60), commandDue},
		"abort: it is submitted":              {contract.FDBAbort, here, running("Submitted", same, 0), commandDue},
		"abort: it is half aborted":           {contract.FDBAbort, here, running("Aborting", here, 0), commandDue},
		"abort: one runs into a file, ours":   {contract.FDBAbort, file, running("Running", file, 0), commandDue},
		"abort: it is aborted":                {contract.FDBAbort, here, ended("Aborted", here), commandDone},
		"abort: nothing ever ran":             {contract.FDBAbort, here, ended("NeverRan", ""), commandDone},
		"abort: one runs elsewhere":           {contract.FDBAbort, here, running("Running", there, 60), commandStale},
		"abort: of no place":                  {contract.FDBAbort, "", running("Running", "", 60), commandStale},
		"pause: the agents run":               {contract.FDBPause, "", fdb.Status{}, commandDue},
		"pause: they are paused":              {contract.FDBPause, "", fdb.Status{AgentsPaused: true}, commandDone},
		"resume: they are paused":             {contract.FDBResume, "", fdb.Status{AgentsPaused: true}, commandDue},
		"resume: they run":                    {contract.FDBResume, "", fdb.Status{}, commandDone},
		"an operation that nobody knows":      {"expire", here, fdb.Status{}, commandStale},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			command := contract.FDBCommand{Operation: c.operation, URL: c.url}
			assert.Equal(t, c.want, due(command, c.status, contract.FDBDesired{SnapshotPeriodSeconds: 60}))
		})
	}
}
