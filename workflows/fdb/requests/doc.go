// Package requests is how the workflows of FoundationDB send each other requests and run its tools: requests to the owner of a
// cluster and to the guard of a container, limits of commands, and what to report when there is no answer.
//
// The workflows below workflows/fdb call it.
package requests
