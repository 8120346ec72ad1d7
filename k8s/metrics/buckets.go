package metrics

var backupsWithheld = registered(newCounter("holdfast_backups_withheld_total",
	"Backups in tenants' buckets that are withheld from Velero; each counts once per synchronization.")).WithLabelValues()

// BackupWithheld counts a backup in a tenant's bucket whose files are too large for Velero.
func BackupWithheld() { backupsWithheld.Inc() }
