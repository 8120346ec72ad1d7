package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/workflows"
	"holdfast.dev/holdfast/workflows/contract"
)

// notShown are the kinds of objects that the command line does not show, and why.
var notShown = map[string]string{
	contract.KindDownload.Workflow: "kubectl-oadp makes a request, waits for its answer, and deletes it",
}

func TestEveryKindOfObjectsIsShown(t *testing.T) {
	shown := map[string]bool{}
	for _, kind := range shownKinds() {
		assert.False(t, shown[kind.Workflow], kind.Workflow)
		shown[kind.Workflow] = true
	}
	for _, kind := range workflows.Kinds() {
		if kind.Served != nil {
			assert.NotEqual(t, shown[kind.Workflow], notShown[kind.Workflow] != "", kind.Workflow)
		}
	}
}
