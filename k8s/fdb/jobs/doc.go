// Package jobs builds the pods in which data of FoundationDBBackups are expired and deleted, and reads what became of them. It
// does no I/O.
//
// # A turn
//
// PlanTurn says what a turn of the queue of expirations has to do; each step of it is one Pod, whose View tells how far it is.
//
// # The pod
//
// It is made of the agents' template, the user's merged into it: image, secrets, TLS, service account and nodes are those of the
// agents. It runs one container, for sidecars would never end, and is no agent: it has no label of theirs. A pod that deletes
// needs no FoundationDB cluster.
//
// # The result
//
// The pod runs a script of ours, which leaves a few lines in the container's termination message (4096 bytes at most), so that
// nobody needs the right to read logs:
//
//	before EXIT JSON-OR-TEXT     what describe said before the expiration
//	expire EXIT TEXT             what expire said
//	after EXIT JSON-OR-TEXT      what describe said after it
//	delete NUMBER EXIT TEXT      what delete said of the URL of that number, counted from 1
//	end                          the script got to its end
//
// EXIT is the tool's exit code, 124 if it was ended at its limit.
package jobs
