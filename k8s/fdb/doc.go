// Package fdb knows FoundationDB's backups: where they go (accounts, URLs, the time in their paths), the arguments of fdbbackup
// as workers run it, and the meaning of its output. The commands of expirations and deletions are in a script of
// activities/fdb/jobs, and the decisions about backups in workflows/fdb.
//
// Everything is a pure function; no tool is run here. No message and no argument that it returns holds a secret: secrets stay in
// the credentials file. The workflows and activities of FoundationDB call it.
package fdb
