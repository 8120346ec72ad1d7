package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/starter/velero"
)

// Objects is what a report is made of.
type Objects struct {
	Cluster  string
	Holdings []velero.Holding
	// Quotas are those of the namespaces that have limits. QuotaProblem says why there are none.
	Quotas       []velero.Quota
	QuotaProblem string
	Plans        []holdfastv1alpha1.BackupPlan
	Backups      []oadpv1alpha1.NonAdminBackup
	Restores     []oadpv1alpha1.NonAdminRestore
	Approvals    []oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequest
	Volumes      []velerov1.PodVolumeBackup
	Databases    []fdbv1alpha1.FoundationDBBackup
}

// Read reads what a report is made of.
func Read(ctx context.Context, reader client.Reader, cluster string, scope velero.QuotaScope) (Objects, error) {
	o := Objects{Cluster: cluster}
	var err error
	if o.Holdings, err = velero.ReadHoldings(ctx, reader, scope.OADPNamespace); err != nil {
		return o, err
	}
	var unusable *check.UnusableError
	if o.Quotas, err = velero.ReadQuotas(ctx, reader, scope, time.Now()); errors.As(err, &unusable) {
		o.QuotaProblem = err.Error() // the rest of the report does not depend on it
	} else if err != nil {
		return o, err
	}
	var plans holdfastv1alpha1.BackupPlanList
	var backups oadpv1alpha1.NonAdminBackupList
	var restores oadpv1alpha1.NonAdminRestoreList
	var approvals oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestList
	var volumes velerov1.PodVolumeBackupList
	there := client.InNamespace(scope.OADPNamespace)
	for _, each := range []struct {
		what string
		list client.ObjectList
		in   []client.ListOption
	}{
		{"BackupPlans", &plans, nil},
		{"NonAdminBackups", &backups, nil},
		{"NonAdminRestores", &restores, nil},
		{"approval requests", &approvals, []client.ListOption{there}},
		{"PodVolumeBackups", &volumes, []client.ListOption{there}},
	} {
		if err := reader.List(ctx, each.list, each.in...); err != nil {
			return o, fmt.Errorf("list %s: %w", each.what, err)
		}
	}
	var databases fdbv1alpha1.FoundationDBBackupList
	if err := reader.List(ctx, &databases); err != nil && !meta.IsNoMatchError(err) { // a cluster may be without them
		return o, fmt.Errorf("list FoundationDBBackups: %w", err)
	}
	o.Databases = databases.Items
	o.Plans, o.Backups, o.Restores = plans.Items, backups.Items, restores.Items
	o.Approvals, o.Volumes = approvals.Items, volumes.Items
	return o, nil
}
