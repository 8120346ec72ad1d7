// Package fdb knows FoundationDB's backups: where they go (accounts, URLs, the time in their paths), what fdbbackup is told and
// what its answers mean, and from that what is to be done next for a FoundationDBBackup and what its status must say.
//
// Everything but Gather is a pure function; no tool is run here. Nothing that it returns for people or for arguments holds a
// secret: those stay in the credentials file.
package fdb
