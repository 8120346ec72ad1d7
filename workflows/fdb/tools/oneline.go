package tools

import (
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
)

// fdbRoundsVersion marks runs whose turns go round the namespaces. Those that began before know one line for all.
const fdbRoundsVersion = "turns-go-round-the-namespaces"

// OneLine reports whether the run began before turns went round the namespaces.
func OneLine(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, fdbRoundsVersion, workflow.DefaultVersion, 1) == workflow.DefaultVersion
}

// Beyond is what objects say of those whom a coordinator does not carry; nothing if they say none.
func Beyond(found *contract.Beyond) contract.Beyond {
	if found == nil {
		return contract.Beyond{}
	}
	return *found
}
