// Package tools is how the workflows of FoundationDB ask each other and have tools run: the owner of a cluster, the guard of a
// container, how long a command may take, and what to say when nobody answers.
//
// The workflows below workflows/fdb call it. It imports, of ours, only workflows/call, workflows/contract and
// workflows/details.
package tools
