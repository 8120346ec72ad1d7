package expiry_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/fdb/expiry"
)

func deletedPlaces(places ...contract.FDBPlace) *contract.FDBPodResult {
	result := &contract.FDBPodResult{}
	for _, place := range places {
		result.Deleted = append(result.Deleted, place.URL)
	}
	return result
}

func TestOlderBackupsAreDeletedOnlyIfTheNewestHoldsTheMinimum(t *testing.T) {
	tests := map[string]struct {
		left    *contract.FDBPodResult
		answers map[string]contract.FDBContainerAnswer
		second  string
		outcome contract.FDBTurnOutcome
	}{
		"it does":                  {left: expiredTo(40, 29), second: "pod 2 delete old+oldest", outcome: contract.FDBTurnDone},
		"it does, nothing expired": {left: &contract.FDBPodResult{Before: described(8)}, second: "pod 2 delete old+oldest", outcome: contract.FDBTurnDone},
		"it does, and refuses more": {
			left: troubled(contract.FDBClassUnsafe, described(20)), second: "pod 2 delete old+oldest", outcome: contract.FDBTurnRefused,
		},
		"it is too young":              {left: &contract.FDBPodResult{Before: described(6)}, outcome: contract.FDBTurnNothing},
		"it cannot be restored":        {left: &contract.FDBPodResult{Before: &contract.FDBContainer{URL: newest.URL}}, outcome: contract.FDBTurnNothing},
		"what is left is not reported": {left: troubled(contract.FDBClassTimeout, described(40)), outcome: contract.FDBTurnFailed},
		"it does, and others use one of them": {
			left: expiredTo(40, 29), answers: map[string]contract.FDBContainerAnswer{"old": {Others: []string{"else/b"}}},
			second: "pod 2 delete oldest", outcome: contract.FDBTurnDone,
		},
		"it does, and others use them": {
			left: expiredTo(40, 29), outcome: contract.FDBTurnDone,
			answers: map[string]contract.FDBContainerAnswer{"old": {Others: []string{"else/b"}}, "oldest": {Busy: "being read"}},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newTurnWorld(toExpire(older, oldest))
			w.results[1], w.results[2] = test.left, deletedPlaces(older, oldest)
			for container, answer := range test.answers {
				w.answers[container] = answer
			}
			w.run().ends(t, expiring())
			assert.Equal(t, test.outcome, w.result.Outcome)
			if test.second == "" {
				assert.Empty(t, w.result.Deleted)
				for _, step := range w.log {
					assert.NotContains(t, step, "pod 2")
				}
				return
			}
			assert.True(t, w.happened(test.second), "%q", w.log)
			assert.Contains(t, w.result.Deleted, oldest.URL)
			assert.True(t, w.happened("backup leave oldest"))
			_, used := test.answers["old"]
			assert.Equal(t, !used, w.happened("backup leave old"))
			assert.Contains(t, w.result.Message, "deleted, as the newer data hold all")
		})
	}
}

func TestAnOlderBackupThatAnotherOfTheClusterHasStays(t *testing.T) {
	plan := toExpire(older, oldest)
	elsewhere := []contract.ObjectRef{{Namespace: "else", Name: "b"}}
	plan.Sharing = map[string][]contract.ObjectRef{older.Container: elsewhere, newest.Container: elsewhere}
	w := newTurnWorld(plan)
	w.results[1], w.results[2] = expiredTo(40, 29), deletedPlaces(oldest)
	w.run().ends(t, expiring())
	assert.Equal(t, []string{
		"expire new", "pod 1 expire new", "remove lab-1785585600-1", "delete oldest", "pod 2 delete oldest", "remove lab-1785585600-2",
		"closing", "release new", "release oldest", "backup leave oldest", "result Done Expired", "ended Done",
	}, w.log, "what is shared is expired all the same")
}

// The pod of an earlier start of this turn was created when another container was the newest.
func TestAFoundPodOfAnotherContainerProvesNothingOfTheNewest(t *testing.T) {
	w := newTurnWorld(toExpire(older))
	w.results[2] = deletedPlaces(older)
	r := w.run()
	result := expiredTo(40, 29)
	result.Before.URL, result.After.URL = older.URL, older.URL
	w.pods["lab-1785585600-1"] = &turnPod{FDBPodView: contract.FDBPodView{
		Name: "lab-1785585600-1", Found: true, Created: turnStart.Unix(), Ended: true, Result: result,
	}}
	r.ends(t, expiring())
	assert.Equal(t, contract.FDBTurnNotYet, w.result.Outcome)
	assert.Contains(t, w.result.Message, "no longer the newest")
	assert.Empty(t, w.result.Deleted)
	assert.False(t, w.happened("delete old"), "%q", w.log)
}

func TestTheSecondPodIsNotCreatedBesideAFirstThatStays(t *testing.T) {
	w := newTurnWorld(toExpire(older))
	w.results[1], w.lingers = expiredTo(40, 29), 30*time.Minute
	w.run().ends(t, expiring())
	assert.Equal(t, []string{
		"expire new", "pod 1 expire new", "remove lab-1785585600-1", "closing", "release new", "result Done Expired", "ended Done",
	}, w.log)
	assert.Less(t, w.at["closing"], 3*time.Minute, "others have their turns")
	assert.Empty(t, w.result.Deleted)
}

func TestHowDeletionsEnd(t *testing.T) {
	shared := contract.FDBContainerAnswer{Others: []string{"somebody outside this namespace", "team/c (Kubernetes cluster west)"}}
	tests := map[string]struct {
		answers map[string]contract.FDBContainerAnswer
		sharing map[string][]contract.ObjectRef // what the plan says
		left    *contract.FDBPodResult
		outcome contract.FDBTurnOutcome
		reason  string
		message string
		kept    []string
		log     []string
	}{
		"all is deleted": {
			left: deletedPlaces(older, newest), outcome: contract.FDBTurnDone, reason: fdbv1alpha1.ExpiryDeleted, message: "deleted: " + older.URL,
			log: []string{
				"delete old", "delete new", "pod 1 delete old+new", "remove lab-1785585600-1", "closing", "release old", "release new",
				"backup leave old", "backup leave new", "result Done Deleted", "ended Done",
			},
		},
		"others use some": {
			answers: map[string]contract.FDBContainerAnswer{"old": shared}, left: deletedPlaces(newest), kept: []string{older.URL},
			outcome: contract.FDBTurnDone, reason: fdbv1alpha1.ExpiryKept,
			message: "are used by somebody outside this namespace, team/c (Kubernetes cluster west) too",
			log: []string{
				"delete refused old", "delete new", "pod 1 delete new", "remove lab-1785585600-1", "closing", "release new",
				"backup leave new", "backup leave old", "result Done KeptForOthers", "ended Done",
			},
		},
		"others use all": {
			answers: map[string]contract.FDBContainerAnswer{"old": shared, "new": shared}, kept: []string{older.URL, newest.URL},
			outcome: contract.FDBTurnDone, reason: fdbv1alpha1.ExpiryKept, message: "stay",
			log: []string{
				"delete refused old", "delete refused new", "backup leave old", "backup leave new", "result Done KeptForOthers", "ended Done",
			},
		},
		"a backup of this cluster has one in its status, which the guard may not know": {
			sharing: map[string][]contract.ObjectRef{older.Container: {
				{Namespace: "team", Name: "c"}, {Namespace: "else", Name: "b"}, {Namespace: "team-b", Name: "b"},
			}}, left: deletedPlaces(newest), kept: []string{older.URL},
			outcome: contract.FDBTurnDone, reason: fdbv1alpha1.ExpiryKept,
			message: "are used by team/c (Kubernetes cluster west), somebody outside this namespace too",
			log: []string{
				"delete new", "pod 1 delete new", "remove lab-1785585600-1", "closing", "release new",
				"backup leave new", "backup leave old", "result Done KeptForOthers", "ended Done",
			},
		},
		"one is being restored": {
			answers: map[string]contract.FDBContainerAnswer{"new": {Busy: "the data are being restored"}},
			outcome: contract.FDBTurnNotYet, reason: fdbv1alpha1.ExpiryWaiting, message: "the data are being restored",
			log: []string{"delete old", "delete refused new", "release old", "result NotYet Waiting", "ended NotYet"},
		},
		"one cannot be deleted": {
			left: &contract.FDBPodResult{
				Deleted: []string{older.URL}, Failure: &contract.FDBFailure{Class: contract.FDBClassDenied, Message: "Access Denied"},
			},
			outcome: contract.FDBTurnFailed, reason: fdbv1alpha1.ExpiryFailed, message: "not deleted: " + newest.URL + ": Access Denied",
			log: []string{
				"delete old", "delete new", "pod 1 delete old+new", "remove lab-1785585600-1", "result Failed Failed", "closing",
				"release old", "release new", "backup leave old", "ended Failed",
			},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			w := newTurnWorld(contract.FDBExpiryPlan{Owner: "team/lab", Delete: []contract.FDBPlace{older, newest}, Sharing: test.sharing})
			w.results[1] = test.left
			for container, answer := range test.answers {
				w.answers[container] = answer
			}
			w.run().ends(t, deleting())
			assert.Equal(t, test.outcome, w.result.Outcome)
			assert.Equal(t, test.reason, w.result.Reason)
			assert.Contains(t, w.result.Message, test.message)
			assert.Equal(t, test.kept, w.result.Kept)
			assert.Equal(t, test.log, w.log)
			if test.left != nil {
				assert.Equal(t, test.left.Deleted, w.result.Deleted)
			}
		})
	}
}

func TestMoreThanAPodDeletesIsLeftToAnotherTurn(t *testing.T) {
	var plan contract.FDBExpiryPlan
	for i := range expiry.MaxDelete + 2 {
		plan.Delete = append(plan.Delete, fdbPlace(fmt.Sprintf("p%d", i)))
	}
	t.Run("of a deletion, which is not done", func(t *testing.T) {
		w := newTurnWorld(plan)
		w.answers["p0"] = contract.FDBContainerAnswer{Others: []string{"else/b (Kubernetes cluster west)"}}
		w.results[1] = deletedPlaces(plan.Delete[1 : expiry.MaxDelete+1]...)
		w.run().ends(t, deleting())
		assert.Equal(t, contract.FDBTurnNotYet, w.result.Outcome, "the object must not go")
		assert.Equal(t, w.results[1].Deleted, w.result.Deleted)
		assert.False(t, w.happened("delete p101"))
		assert.False(t, w.happened("backup leave p0"), "it is reported at the end")
	})
	t.Run("of an expiration, which is done", func(t *testing.T) {
		w := newTurnWorld(toExpire(plan.Delete...))
		w.results[1], w.results[2] = expiredTo(40, 29), deletedPlaces(plan.Delete[:expiry.MaxDelete]...)
		w.run().ends(t, expiring())
		assert.Equal(t, contract.FDBTurnDone, w.result.Outcome)
		assert.Len(t, w.result.Deleted, expiry.MaxDelete)
		assert.False(t, w.happened("delete p100"))
	})
}

func TestABackupWithoutDataIsDeletedAtOnce(t *testing.T) {
	w := newTurnWorld(contract.FDBExpiryPlan{Owner: "team/lab"})
	w.run().ends(t, deleting())
	assert.Equal(t, []string{"result NothingToDo Deleted", "ended NothingToDo"}, w.log)
}
