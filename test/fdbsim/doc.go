// Package fdbsim is a stand-in for the tools of FoundationDB: fdbbackup, fdbrestore, fdbcli and backup_agent, as executables that
// share a state on disk. With it the tests of FoundationDB backups run where FoundationDB is not installed.
//
// Install lays the tools down, by version, as holdfast-worker looks for them; Sim is the test's hand on the clusters behind
// them: it makes clusters, sets keys, makes commands slow, fail or hang, and tells which commands ran. A cluster file with the
// connection string of Sim.NewCluster leads the tools to a cluster. Any other is of a cluster that does not answer.
//
// Faithful, as the transcripts in testdata/transcripts show, which real tools of release 7.3.48 printed and which a test replays:
// what is printed, and where to, exit codes, what hangs; the states of backups and restores and what each command does to
// them; containers, on disk and in S3: their layout, which versions can be restored, what expire refuses and deletes; snapshots
// and logs hold the keys and changes, so that a restore brings back what was there at a version; the lock of a database under a
// restore; agents, which do all the work, go on where a killed one stopped, and write the part on backups in status json; the
// traps: options that are parsed loosely, exit code 0 without agents, Errors that are always empty, the describe of releases
// before 7.3.64 that goes stale, an empty tag.
//
// Not faithful: the contents of files (JSON), file sizes; the speed, which Control sets, by default so that a test is quick (a
// log file holds 1s, not 20s; status json is written every second, not every 40s); versions and times run exactly alike; what
// status json says beside backups, lock and client is a recording. Not there: TLS, encryption, partitioned logs, incremental
// restores, trace files, fdbcli's other commands and its prompt. What no transcript shows is made after FoundationDB's source:
// a server that refuses a request (401, 403), missing credentials, which are waited for, and an unreachable store, which start
// gives 30s. A bucket that is missing is asked for in the URL's region, as releases do that do not use freed memory for it: by
// 7.3.48 none is ever made, and at times it crashes.
package fdbsim
