package expiry_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/fdb/expiry"
)

func TestWhatAPodsEndMeans(t *testing.T) {
	tests := map[string]struct {
		pod  contract.FDBPodView
		over bool
		want string
	}{
		"it runs":       {pod: contract.FDBPodView{Name: "p", Found: true}, want: "stopped at its limit of 1h0m0s"},
		"it waits":      {pod: contract.FDBPodView{Name: "p", Found: true, Waiting: "ErrImagePull"}, want: "it waited for ErrImagePull"},
		"it has a word": {pod: contract.FDBPodView{Name: "p", Found: true, Result: &contract.FDBPodResult{}}, over: true},
		"it has a word, and goes": {
			pod: contract.FDBPodView{Name: "p", Found: true, Terminating: true, Result: &contract.FDBPodResult{}}, over: true,
		},
		"it has none":          {pod: contract.FDBPodView{Name: "p", Found: true, Ended: true}, over: true, want: "without a result"},
		"it is evicted":        {pod: contract.FDBPodView{Name: "p", Found: true, Failed: "Evicted"}, over: true, want: "no result: Evicted"},
		"it goes":              {pod: contract.FDBPodView{Name: "p", Found: true, Terminating: true}, over: true, want: "deleted by somebody else"},
		"it is gone":           {pod: contract.FDBPodView{Name: "p"}, over: true, want: "was deleted before it left"},
		"it cannot be created": {pod: contract.FDBPodView{Name: "p", Refused: true, Failed: "quota"}, over: true, want: "cannot be created: quota"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			assert.Equal(t, test.over, expiry.PodOver(test.pod))
			failure := expiry.PodFailure(test.pod, time.Hour)
			if test.want == "" {
				assert.Empty(t, failure)
			} else {
				assert.Contains(t, failure, test.want)
			}
		})
	}
}

const policyURL = "blobstore://lab@s3.local/new?bucket=fdb"

// day returns a container that can be restored from that day of August on.
func day(day int) *contract.FDBContainer {
	at := time.Date(2026, 8, day, 0, 0, 0, 0, time.UTC).Unix()
	return &contract.FDBContainer{
		URL: policyURL, Restorable: true, Oldest: &contract.FDBPoint{Version: at, Time: at}, Latest: &contract.FDBPoint{Version: 9, Time: at + 9},
	}
}

func TestWhatAnExpireHasBroughtAbout(t *testing.T) {
	policy := contract.FDBExpire{
		FDBPlace: contract.FDBPlace{URL: policyURL, Container: fdb.ContainerOf(policyURL)},
		Before:   day(10).Oldest.Time, RestorableAfter: day(20).Oldest.Time,
	}
	trouble := func(class contract.FDBClass) *contract.FDBFailure {
		return &contract.FDBFailure{Class: class, Message: "so it says"}
	}
	tests := map[string]struct {
		left    contract.FDBPodResult
		outcome contract.FDBTurnOutcome
		reason  string
		message string
		minimum bool
	}{
		"all that is old is gone": {
			left: contract.FDBPodResult{Before: day(5), After: day(12)}, outcome: contract.FDBTurnDone, reason: fdbv1alpha1.ExpiryExpired,
			message: "2026-08-12", minimum: true,
		},
		"the limit was moved back": {
			left: contract.FDBPodResult{Before: day(5), After: day(8)}, outcome: contract.FDBTurnDone, reason: fdbv1alpha1.ExpiryExpired,
			message: "moves the limit back", minimum: true,
		},
		"the limit was moved back to the beginning": {
			left: contract.FDBPodResult{Before: day(5), After: day(5)}, outcome: contract.FDBTurnNothing, reason: fdbv1alpha1.ExpiryNothing,
			message: "nothing was expired up to 2026-08-10", minimum: true,
		},
		"nothing can be restored yet, before and after": {
			left: contract.FDBPodResult{
				Before: &contract.FDBContainer{URL: policyURL}, After: &contract.FDBContainer{URL: policyURL},
			}, outcome: contract.FDBTurnNothing, reason: fdbv1alpha1.ExpiryNothing, message: "nothing older than 2026-08-10",
		},
		"nothing was old, and it was run": {
			left: contract.FDBPodResult{Before: day(15), After: day(15)}, outcome: contract.FDBTurnNothing, reason: fdbv1alpha1.ExpiryNothing,
			message: "nothing older than 2026-08-10", minimum: true,
		},
		"nothing was old, and it was not run": {
			left: contract.FDBPodResult{Before: day(15)}, outcome: contract.FDBTurnNothing, reason: fdbv1alpha1.ExpiryNothing,
			message: "nothing older than 2026-08-10", minimum: true,
		},
		"too little is left": {
			left: contract.FDBPodResult{Before: day(5), After: day(21)}, outcome: contract.FDBTurnDone, reason: fdbv1alpha1.ExpiryExpired,
			message: "2026-08-21",
		},
		"what is left is not known": {
			left:    contract.FDBPodResult{Before: day(5), After: &contract.FDBContainer{URL: policyURL, Failure: trouble(contract.FDBClassStore)}},
			outcome: contract.FDBTurnDone, reason: fdbv1alpha1.ExpiryExpired, message: "could not be read: so it says",
		},
		"there are no data yet": {
			left: contract.FDBPodResult{Before: &contract.FDBContainer{URL: policyURL, Missing: true}}, outcome: contract.FDBTurnNothing,
			reason: fdbv1alpha1.ExpiryNothing, message: "no data yet",
		},
		"there is no container": {
			left: contract.FDBPodResult{Failure: trouble(contract.FDBClassMissing)}, outcome: contract.FDBTurnNothing,
			reason: fdbv1alpha1.ExpiryNothing, message: "no data yet",
		},
		"it is a pod of something else": {
			left: contract.FDBPodResult{Deleted: []string{"x"}}, outcome: contract.FDBTurnFailed, reason: fdbv1alpha1.ExpiryFailed,
			message: "no description",
		},
		"it would be unsafe": {
			left:    contract.FDBPodResult{Before: day(5), Failure: trouble(contract.FDBClassUnsafe)},
			outcome: contract.FDBTurnRefused, reason: fdbv1alpha1.ExpiryUnsafe,
			message: "a new snapshot is needed that begins after 2026-08-10T00:00:00Z and ends before 2026-08-20T00:00:00Z", minimum: true,
		},
		"the cluster does not answer": {
			left: contract.FDBPodResult{Failure: trouble(contract.FDBClassTimeout)}, outcome: contract.FDBTurnNotYet,
			reason: fdbv1alpha1.ExpiryWaiting, message: "does not answer: so it says",
		},
		"it was killed": {
			left: contract.FDBPodResult{Before: day(5), Failure: trouble(contract.FDBClassTimeout)}, outcome: contract.FDBTurnFailed,
			reason: fdbv1alpha1.ExpiryFailed, message: "so it says",
		},
		"the store refuses": {
			left: contract.FDBPodResult{Failure: trouble(contract.FDBClassDenied)}, outcome: contract.FDBTurnFailed,
			reason: fdbv1alpha1.ExpiryFailed, message: "so it says",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			ended := expiry.TurnExpired(policy, test.left)
			assert.Equal(t, test.outcome, ended.Outcome)
			assert.Equal(t, test.reason, ended.Reason)
			assert.Contains(t, ended.Message, test.message)
			assert.Equal(t, test.minimum, expiry.HoldsMinimum(policy, test.left))
		})
	}
}

func TestAnUnknownTimeHoldsNoMinimum(t *testing.T) {
	timeless := day(5)
	timeless.Oldest.Time = 0
	left := contract.FDBPodResult{Before: timeless, After: timeless}
	expire := contract.FDBExpire{FDBPlace: contract.FDBPlace{URL: policyURL, Container: fdb.ContainerOf(policyURL)}}
	assert.True(t, expiry.HoldsMinimum(expire, left), "the spec asks for nothing")
	expire.RestorableAfter = 1
	assert.False(t, expiry.HoldsMinimum(expire, left))
}

func TestAReportOfAnotherContainerHoldsNoMinimum(t *testing.T) {
	expire := contract.FDBExpire{FDBPlace: contract.FDBPlace{URL: policyURL, Container: fdb.ContainerOf(policyURL)}}
	other := day(5)
	other.URL = "blobstore://lab@s3.local/old?bucket=fdb"
	same := day(5)
	same.URL = "blobstore://other@S3.local:443/new?bucket=fdb"
	tests := map[string]struct {
		left contract.FDBPodResult
		want bool
	}{
		"it is the one":                     {contract.FDBPodResult{Before: day(5), After: day(5)}, true},
		"it is the one under another URL":   {contract.FDBPodResult{Before: same, After: same}, true},
		"both are of another":               {contract.FDBPodResult{Before: other, After: other}, false},
		"only what was before":              {contract.FDBPodResult{Before: other, After: day(5)}, false},
		"only what is there":                {contract.FDBPodResult{Before: day(5), After: other}, false},
		"nothing was expired of another":    {contract.FDBPodResult{Before: other}, false},
		"it is a container that has no URL": {contract.FDBPodResult{Before: &contract.FDBContainer{Restorable: true, Oldest: day(5).Oldest}}, false},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			assert.Equal(t, test.want, expiry.DescribesOnly(expire, test.left))
			assert.Equal(t, test.want, expiry.HoldsMinimum(expire, test.left))
		})
	}
}

func TestADeletedContainerIsKnownByItsPlace(t *testing.T) {
	const url = "blobstore://lab@s3.local/old?bucket=fdb"
	places := []contract.FDBPlace{{URL: url, Container: fdb.ContainerOf(url)}, {URL: "file:///a"}}
	tests := map[string]struct {
		gone          []string
		deleted, left []string
	}{
		"both":                  {gone: []string{url, "file:///a"}, deleted: []string{url, "file:///a"}},
		"under another account": {gone: []string{"blobstore://other@s3.local:443/old?bucket=fdb"}, deleted: []string{url}, left: []string{"file:///a"}},
		"of no store":           {gone: []string{"file:///b"}, left: []string{url, "file:///a"}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			deleted, left := expiry.DeletedOf(places, &contract.FDBPodResult{Deleted: test.gone})
			assert.Equal(t, test.deleted, deleted)
			assert.Equal(t, test.left, left)
		})
	}
	_, left := expiry.DeletedOf(places, nil)
	assert.Len(t, left, 2, "a pod without a report has deleted nothing as far as is known")
}
