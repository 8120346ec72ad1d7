package download

import (
	"context"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
)

// file identifies a file for Velero.
type file struct {
	// of is the name of its Velero Backup or Restore, holder the Velero Backup with which it is stored.
	of     string
	holder *velerov1.Backup
	// missing says why this tenant has no such file; the rest is empty then.
	missing string
}

func missing(why string, args ...any) file { return file{missing: fmt.Sprintf(why, args...)} }

// judge decides which file of Velero's the target is, and whether the tenant may have it. Another tenant's file counts as
// absent, and only files in the tenant's own storage location are handed out: any other URL would be signed with the
// administrator's keys. The Velero Backup says where a file is; the spec of the NonAdminBackup can be changed by the tenant.
func (g *Gatherer) judge(ctx context.Context, o *Objects) (Verdict, error) {
	target := o.NADR.Spec.Target
	of := subjects[target.Kind]
	find := g.backupFile
	switch {
	case of == "":
		return of.refuse("spec.target.kind %q is not known", target.Kind), nil
	case o.Foreign:
		return NotOwned(o), nil
	case len(validation.IsDNS1123Subdomain(target.Name)) > 0: // no object has such a name
		return of.refuse("there is no %s %q in this namespace", of, target.Name), nil
	case of == ofRestore:
		find = g.restoreFile
	}
	if refusal := refusedByVelero(o.NADR); refusal != nil {
		return *refusal, nil
	}
	wanted, err := find(ctx, o.NADR.Namespace, target.Name)
	if err != nil {
		return Verdict{}, err
	}
	if wanted.missing != "" {
		return of.refuse("%s", wanted.missing), nil
	}
	location := &velerov1.BackupStorageLocation{}
	where := wanted.holder.Spec.StorageLocation
	exists := where != ""
	if exists {
		exists, err = k8s.Get(ctx, g.Reader, "Velero BackupStorageLocation", g.OADPNamespace, where, location)
	}
	switch {
	case err != nil:
		return Verdict{}, err
	case !exists:
		return of.refuse("the storage location of %s %q does not exist", of, target.Name), nil
	case !owner.Tenants(location) || !owner.MayHold(location, o.NADR.Namespace):
		return locationNotUsed(), nil
	}
	available := velerov1.DownloadTarget{Kind: target.Kind, Name: wanted.of}
	if o.failed(available) {
		return of.refuse("%s", notSigned), nil
	}
	return Verdict{Available: true, Target: available}, nil
}

func (g *Gatherer) finder() velero.Finder {
	return velero.Finder{Reader: g.Reader, ClusterID: g.ClusterID, OADPNamespace: g.OADPNamespace}
}

// backupFile finds the Velero Backup of a NonAdminBackup.
func (g *Gatherer) backupFile(ctx context.Context, namespace, name string) (file, error) {
	nab := &oadpv1alpha1.NonAdminBackup{}
	exists, err := k8s.Get(ctx, g.Reader, oadpv1alpha1.KindNonAdminBackup, namespace, name, nab)
	if err != nil {
		return file{}, err
	}
	if !exists {
		return missing("there is no NonAdminBackup %q in this namespace", name), nil
	}
	found, err := g.finder().Backup(ctx, nab)
	if err != nil {
		return file{}, err
	}
	made := found.Made
	if made == nil {
		return missing("NonAdminBackup %q has no Velero Backup", name), nil
	}
	switch phase := made.Status.Phase; {
	case phase == velerov1.BackupPhaseFailedValidation:
		return missing("Velero refused NonAdminBackup %q, so it has no files", name), nil
	case velero.Unwritten(phase):
		return missing("Velero has not written the files of NonAdminBackup %q yet", name), nil
	}
	return file{of: made.Name, holder: made}, nil
}

// restoreFile finds the Velero Restore of a NonAdminRestore. Its files are stored with the backup's.
func (g *Gatherer) restoreFile(ctx context.Context, namespace, name string) (file, error) {
	nar := &oadpv1alpha1.NonAdminRestore{}
	exists, err := k8s.Get(ctx, g.Reader, oadpv1alpha1.KindNonAdminRestore, namespace, name, nar)
	if err != nil {
		return file{}, err
	}
	if !exists {
		return missing("there is no NonAdminRestore %q in this namespace", name), nil
	}
	found, err := g.finder().Restore(ctx, nar)
	if err != nil {
		return file{}, err
	}
	made := found.Made
	if made == nil {
		return missing("NonAdminRestore %q has no Velero Restore", name), nil
	}
	switch phase := made.Status.Phase; {
	case phase == velerov1.RestorePhaseFailedValidation:
		return missing("Velero refused NonAdminRestore %q, so it has no files", name), nil
	case velero.Unwritten(phase):
		return missing("Velero has not written the files of NonAdminRestore %q yet", name), nil
	}
	source := &velerov1.Backup{}
	exists, err = k8s.Get(ctx, g.Reader, "Velero Backup", g.OADPNamespace, made.Spec.BackupName, source)
	if err != nil {
		return file{}, err
	}
	if of, named := owner.Backup.Named(source); !exists || !named || of.Namespace != namespace {
		return missing("the backup that NonAdminRestore %q was made from is gone", name), nil
	}
	return file{of: made.Name, holder: source}, nil
}
