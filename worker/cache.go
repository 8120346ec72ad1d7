package main

import (
	"runtime/debug"

	"go.temporal.io/sdk/worker"
)

const (
	// restBytes is what a worker has in memory without any workflow, cachedBytes what each workflow in its cache adds
	// (docs/capacity.md, "Memory").
	restBytes   = 60 << 20
	cachedBytes = 57_000
	// mostCached is the SDK's default.
	mostCached  = 10_000
	leastCached = 100
)

// limitCache bounds the cache of open workflows, which the first worker makes. It changes nothing after that.
func limitCache() { worker.SetStickyWorkflowCacheSize(cachedWorkflows(debug.SetMemoryLimit(-1))) }

// cachedWorkflows is how many open workflows fit into two thirds of GOMEMLIMIT; the rest is for what is being collected. The SDK
// itself counts workflows, whatever memory there is. Another workflow is replayed when its next task comes.
func cachedWorkflows(memoryLimit int64) int {
	fits := (memoryLimit/3*2 - restBytes) / cachedBytes
	return int(min(max(fits, leastCached), mostCached))
}
