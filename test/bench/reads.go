package main

import (
	"context"
	"fmt"
	"io"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

const (
	listsMeasured = 30
	getsMeasured  = 300
)

// readsReport is what the API server takes to find the Velero Backups of a plan.
type readsReport struct {
	// Stored is how many Velero Backups it says there are.
	Stored int64 `json:"stored"`
	// ListMS is the CPU time of a list of those with a label that none has, GetMS that of a get by name.
	ListMS float64 `json:"listMS"`
	GetMS  float64 `json:"getMS"`
}

func (r *rig) measureReads(ctx context.Context) (*readsReport, error) {
	first := &metav1.PartialObjectMetadataList{}
	first.SetGroupVersionKind(velerov1.SchemeGroupVersion.WithKind("BackupList"))
	if err := r.client.List(ctx, first, client.InNamespace(env.OADPNamespace), client.Limit(1)); err != nil {
		return nil, err
	}
	if len(first.Items) == 0 {
		return nil, fmt.Errorf("namespace %s has no Velero Backup", env.OADPNamespace)
	}
	report := &readsReport{Stored: 1}
	if others := first.GetRemainingItemCount(); others != nil {
		report.Stored += *others
	}
	var err error
	report.ListMS, err = r.apiServerMS(listsMeasured, func() error {
		return r.client.List(ctx, &velerov1.BackupList{}, client.InNamespace(env.OADPNamespace),
			client.MatchingLabels{holdfastv1alpha1.LabelRecordedPlan: "none"})
	})
	if err != nil {
		return nil, err
	}
	report.GetMS, err = r.apiServerMS(getsMeasured, func() error {
		return r.client.Get(ctx, client.ObjectKeyFromObject(&first.Items[0]), &velerov1.Backup{})
	})
	return report, err
}

// apiServerMS is the CPU time that the API server takes for each of so many calls.
func (r *rig) apiServerMS(calls int, call func() error) (float64, error) {
	pid := r.stack.Component(env.KubeAPIServer).PID()
	before, err := usageOf(pid)
	if err != nil {
		return 0, err
	}
	for range calls {
		if err := call(); err != nil {
			return 0, err
		}
	}
	after, err := usageOf(pid)
	return (after.CPUSeconds - before.CPUSeconds) * 1000 / float64(calls), err
}

func (r *readsReport) print(out io.Writer) {
	if r != nil {
		fmt.Fprintf(out, "CPU time of the API server where %d Velero Backups are stored: %.1f ms for a list by label, "+
			"%.1f ms for a get.\n\n", r.Stored, r.ListMS, r.GetMS)
	}
}
