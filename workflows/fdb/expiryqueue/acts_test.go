package expiryqueue_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.temporal.io/sdk/testsuite"

	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest"
)

func sortedRefs[V any](of map[contract.ObjectRef]V) []contract.ObjectRef {
	return slices.SortedFunc(maps.Keys(of), func(a, b contract.ObjectRef) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
	})
}

// sends sends the queue what an object wants.
func (w *queueWorld) sends(object *queueObject) {
	object.out = false
	w.send = append(w.send, contract.FDBQueueRequest{Cluster: "west", Ref: object.ref, Job: object.job})
}

// wants creates the object of that name, or changes it.
func (w *queueWorld) wants(name string, job contract.FDBJob) {
	object := w.objects[name]
	if object == nil {
		w.born[name]++
		object = &queueObject{ref: contract.ObjectRef{
			Namespace: workflowtest.TeamOf(name), Name: name, UID: fmt.Sprintf("u-%s-%d", name, w.born[name]),
		}, job: job}
		w.objects[name] = object
	}
	if object.job != contract.FDBJobDelete { // a deletion cannot be undone
		object.job = job
	}
	w.sends(object)
}

// leaves removes the policy of an object.
func (w *queueWorld) leaves(name string) {
	if object := w.objects[name]; object != nil {
		delete(w.objects, name)
		w.send = append(w.send, contract.FDBQueueRequest{Cluster: "west", Ref: object.ref})
		if object.job == contract.FDBJobExpire {
			w.born[name]-- // it is the same object that may want it again
		}
	}
}

// sendAll sends what the objects' workflows send when they start again.
func (w *queueWorld) sendAll() {
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		w.sends(w.objects[name])
	}
}

// finishes ends a turn that runs.
func (w *queueWorld) finishes(ref contract.ObjectRef, outcome contract.FDBTurnOutcome) {
	flow, runs := w.flows[ref]
	if !runs {
		return
	}
	delete(w.flows, ref)
	delete(w.pods, ref)
	w.ended[queueTurn{ref, flow.turn}] = true
	w.closedAt[queueTurn{ref, flow.turn}] = w.since()
	done := outcome == contract.FDBTurnDone || outcome == contract.FDBTurnNothing
	if object := w.objects[ref.Name]; object != nil && object.ref == ref && flow.job == contract.FDBJobDelete && done {
		delete(w.objects, ref.Name)
		w.gone[ref] = true
	}
	w.send = append(w.send, contract.FDBTurnReport{Ref: ref, Turn: flow.turn, Ended: true, Outcome: outcome})
}

func (w *queueWorld) finishAll(outcome contract.FDBTurnOutcome) {
	for _, ref := range sortedRefs(w.flows) {
		w.finishes(ref, outcome)
	}
}

// closes puts the pod of a running turn into termination.
func (w *queueWorld) closes(ref contract.ObjectRef) {
	flow, runs := w.flows[ref]
	pod, exists := w.pods[ref]
	if !runs || !exists {
		return
	}
	pod.terminating = true
	w.pods[ref] = pod
	w.send = append(w.send, contract.FDBTurnReport{Ref: ref, Turn: flow.turn, Closing: true})
}

// crashes ends the workflow of a turn without a report, with or without its pod.
func (w *queueWorld) crashes(ref contract.ObjectRef, withPod bool) {
	flow, runs := w.flows[ref]
	if !runs {
		return
	}
	w.closedAt[queueTurn{ref, flow.turn}] = w.since()
	delete(w.flows, ref)
	if withPod {
		delete(w.pods, ref)
	}
}

// asks sends an Update, and notes its answer.
func (w *queueWorld) asks(update string, in any) {
	if w.env == nil {
		return
	}
	w.env.UpdateWorkflow(update, fmt.Sprintf("update-%d", w.since()), &testsuite.TestUpdateCallback{
		OnReject: func(err error) { w.answers = append(w.answers, "refused: "+err.Error()) },
		OnAccept: func() {},
		OnComplete: func(answer any, err error) {
			if err != nil {
				w.answers = append(w.answers, "failed: "+err.Error())
				return
			}
			w.answers = append(w.answers, answer.(contract.TurnAnswer).Message)
		},
	}, in)
}

func (w *queueWorld) state() (state contract.FDBExpiryQueueState) {
	w.mu.Unlock() // the query runs the workflow
	defer w.mu.Lock()
	answer, err := w.env.QueryWorkflow(contract.QueryState)
	if err == nil {
		err = answer.Get(&state)
	}
	if err != nil {
		w.fault("query: %v", err)
	}
	return state
}

func named(name string) contract.FDBQueueName {
	return contract.FDBQueueName{Namespace: workflowtest.TeamOf(name), Name: name}
}

// ref returns the object of that name that was created first.
func backupRef(name string) contract.ObjectRef {
	return contract.ObjectRef{Namespace: workflowtest.TeamOf(name), Name: name, UID: "u-" + name + "-1"}
}
