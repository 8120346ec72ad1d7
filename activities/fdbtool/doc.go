// Package fdbtool runs FoundationDB's own tools. They have no time limits, write wherever they stand and take their secrets
// from files and the environment: here each runs in a process group and a private folder of its own, with an environment built
// from nothing, and ends at its limit, with its activity, or (on Linux) with the worker, however that ends.
//
// The activities of FoundationDB call it; worker/fdbworker makes its Runner. It imports, of ours, activities/fdbtool/cage,
// k8s/fdb and workflows/contract.
package fdbtool
