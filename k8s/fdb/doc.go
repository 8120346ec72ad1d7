// Package fdb knows FoundationDB's backups: where they go (accounts, URLs, the time in their paths), what fdbbackup is told
// and what its answers mean. What is to be done next, workflows/fdb decides.
//
// Everything is a pure function; no tool is run here. Nothing that it returns for people or for arguments holds a secret:
// those stay in the credentials file. The workflows and activities of FoundationDB call it. It imports, of ours, k8s/api,
// k8s/shorten and workflows/contract.
package fdb
