// Package metrics holds Holdfast's own Prometheus instruments. They are registered with controller-runtime's registry
// when the process starts, so that they are served on one page with those of client-go, controller-runtime and
// Temporal's SDK. No label carries a tenant's name, but for the URL of data that were left behind: the number of series does not
// grow with the number of objects.
//
// Times are seconds. Kubernetes stores creation and completion times without fractions, so what is measured from one of
// them may be up to a second too long; it is never negative.
//
// Counted by the worker's activities. A kill between a write and its count loses the count; nothing is counted twice for
// one write.
//
//	holdfast_backups_total{result}                counter    Backups that have ended, by result (see Result).
//	holdfast_backup_creation_seconds              histogram  From a NonAdminBackup's creation to its Velero Backup, unless it
//	                                                         was BackingOff in between.
//	holdfast_backup_completion_seconds            histogram  From a NonAdminBackup's creation to its final Velero phase.
//	holdfast_backup_mirror_seconds                histogram  From Velero's completion to that phase in our status.
//	holdfast_patch_conflicts_total{resource}      counter    Patches that met another writer and were decided anew.
//	holdfast_activity_retries_total{activity_type} counter   Attempts of an activity after its first.
//	holdfast_approval_actions_total{action}       counter    Changes of approval requests: ask, approve, reject, revoke, others.
//	holdfast_decisions_through_temporal           gauge      1 while Temporal's Updates and signals decide about locations, else 0.
//	holdfast_velero_stalled_total                 counter    Backups and restores found stalled: ended in the store alone.
//	holdfast_restores_total{result}               counter    Restores that have ended, by result (see Result).
//	holdfast_restore_creation_seconds             histogram  As for backups.
//	holdfast_restore_completion_seconds           histogram  From a NonAdminRestore's creation to its end.
//	holdfast_restore_mirror_seconds               histogram  As for backups.
//	holdfast_restore_finalization_tasks_total{task, result} counter Tasks after restores that have ended.
//	holdfast_restore_finalization_task_seconds{task} histogram Time that a task has taken, with its waiting.
//	holdfast_restore_finalization_seconds         histogram  From the beginning of what follows a restore to its end.
//	holdfast_fdb_tool_runs_total{operation, result} counter  Runs of FoundationDB's tools: ok, or the class of the failure.
//	holdfast_fdb_tool_seconds{operation}          histogram  How long they took.
//	holdfast_foundationdbbackups_released_total{result} counter FoundationDBBackups that went: stopped or abandoned.
//	holdfast_fdb_expiry_turns_total{job, outcome} counter   Turns of the queue of expirations that have ended.
//	holdfast_fdb_expiry_turn_seconds{job}         histogram  How long they took.
//	holdfast_foundationdbbackup_data_left_total{url} counter Containers that were left although they were to go along.
//	holdfast_foundationdbrestores_ended_total{result} counter FoundationDBRestores that ended: completed, aborted, failed.
//
// By workflows, replay-safe, through Temporal's metrics handler; the names are contract's:
//
//	holdfast_resource_timeouts_total{activity_type, ...} counter  How often an activity was retried for all of --resource-timeout.
//	holdfast_restore_phase_seconds{phase, ...}    histogram  How long Velero Restores were in each of Velero's phases.
//
// By both processes:
//
//	holdfast_access_denied_total{activity_type}   counter    Calls that the API server refused for want of rights.
//	holdfast_policy_problem                       gauge      1 while the policy in force is not what the cluster holds, else 0.
//	holdfast_dependency_up{check}                 gauge      1 if the readiness check of this name passed when last asked, else 0.
//
// By the watcher:
//
//	holdfast_signal_seconds{kind}                 histogram  From an event to Temporal's acknowledgement, with retries.
//	holdfast_signal_failures_total{kind}          counter    Signals that Temporal did not take; each is tried again.
//	holdfast_velero_backups{state}                gauge      Velero Backups in the OADP namespace (see State), the admins' too.
//	holdfast_velero_last_start_timestamp_seconds  gauge      Newest startTimestamp of any Velero Backup; absent before the first.
//	holdfast_velero_last_validation_timestamp_seconds gauge  Velero's last validation of a BackupStorageLocation, whichever.
//	holdfast_nonadminbackups{phase}               gauge      NonAdminBackups by phase.
//	holdfast_storage_locations{phase}             gauge      NonAdminBackupStorageLocations by phase.
//	holdfast_approvals_pending                    gauge      Storage locations whose spec waits for an administrator.
//	holdfast_approval_oldest_pending_timestamp_seconds gauge Since when the oldest of them waits; absent if none does.
//	holdfast_stalled_backups                      gauge      NonAdminBackups that are VeleroStalled now.
//	holdfast_nonadminrestores{phase}              gauge      NonAdminRestores by phase.
//	holdfast_stalled_restores                     gauge      NonAdminRestores that are VeleroStalled now.
//	holdfast_foundationdbbackups{state}           gauge      FoundationDBBackups: reconciled, unreconciled or deleting.
//	holdfast_foundationdbbackup_conditions{type, reason} gauge How many FoundationDBBackups have that condition now.
//	holdfast_foundationdbbackup_oldest_restorable_timestamp_seconds gauge Least recent latest restorable point; see FDBCensus.
//	holdfast_foundationdbbackup_oldest_trouble_timestamp_seconds gauge Since when one is not as its spec says; absent if all are.
package metrics
