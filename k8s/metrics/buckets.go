package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

var backupsWithheld = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "holdfast_backups_withheld_total",
	Help: "Backups in tenants' buckets that are withheld from Velero; each counts once per synchronization.",
})

func init() { ctrlmetrics.Registry.MustRegister(backupsWithheld) }

// BackupWithheld counts a backup in a tenant's bucket whose files are too large for Velero.
func BackupWithheld() { backupsWithheld.Inc() }
