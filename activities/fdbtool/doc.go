// Package fdbtool runs FoundationDB's own tools. The tools have no time limits, write into their working folder, and read their
// secrets from files and the environment. So each run has a process group, a private folder and an environment of its own. It
// ends at its limit, with its activity, or (on Linux) with the worker, even if that is killed.
//
// The activities of FoundationDB call it; worker/fdbworker makes its Runner.
package fdbtool
