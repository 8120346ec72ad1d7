package download

import (
	"context"
	"fmt"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	switch {
	case of == "":
		return of.refuse("spec.target.kind %q is not known", target.Kind), nil
	case o.Foreign:
		return NotOwned(o), nil
	case len(validation.IsDNS1123Subdomain(target.Name)) > 0: // no object has such a name
		return of.refuse("there is no %s %q in this namespace", of, target.Name), nil
	}
	if refusal := refusedByVelero(o.NADR); refusal != nil {
		return *refusal, nil
	}
	wanted, err := g.fileOf(ctx, of, o.NADR.Namespace, target.Name)
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

// fileOf finds the Velero object of a tenant's object, if that has files. Those of a restore are stored with the backup's.
func (g *Gatherer) fileOf(ctx context.Context, of subject, namespace, name string) (file, error) {
	var object client.Object = &oadpv1alpha1.NonAdminBackup{}
	if of == ofRestore {
		object = &oadpv1alpha1.NonAdminRestore{}
	}
	exists, err := k8s.Get(ctx, g.Reader, string(of), namespace, name, object)
	if err != nil {
		return file{}, err
	}
	if !exists {
		return missing("there is no %s %q in this namespace", of, name), nil
	}
	finder := velero.Finder{Reader: g.Reader, ClusterID: g.ClusterID, OADPNamespace: g.OADPNamespace}
	made, err := finder.Made(ctx, object)
	if err != nil {
		return file{}, err
	}
	switch phase := velero.PhaseOf(made); {
	case made == nil:
		return missing("%s %q has no Velero %s", of, name, strings.TrimPrefix(string(of), "NonAdmin")), nil
	case velero.Refused(phase):
		return missing("Velero refused %s %q, so it has no files", of, name), nil
	case velero.Unwritten(phase):
		return missing("Velero has not written the files of %s %q yet", of, name), nil
	}
	restore, is := made.(*velerov1.Restore)
	if !is {
		return file{of: made.GetName(), holder: made.(*velerov1.Backup)}, nil
	}
	source := &velerov1.Backup{}
	exists, err = k8s.Get(ctx, g.Reader, "Velero Backup", g.OADPNamespace, restore.Spec.BackupName, source)
	if err != nil {
		return file{}, err
	}
	if of, named := owner.Backup.Named(source); !exists || !named || of.Namespace != namespace {
		return missing("the backup that NonAdminRestore %q was made from is gone", name), nil
	}
	return file{of: restore.Name, holder: source}, nil
}
