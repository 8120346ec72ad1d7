package env

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/tools"
)

// TakenUpTwice says whether Velero has taken up a Backup a second time and failed it, since its files are there already. It does
// so when its cache is behind: once in some thousands, on a busy machine. That is no matter of Holdfast's.
func TakenUpTwice(backup *oadpv1alpha1.VeleroBackup) bool {
	return backup != nil && backup.Status != nil && strings.Contains(backup.Status.FailureReason, "already exists in object storage")
}

// BackupTakenUpTwice is TakenUpTwice for Velero's own Backup, which shows it from the moment at which Velero begins again: it may
// have been Completed before.
func BackupTakenUpTwice(made *velerov1.Backup) bool {
	again := slices.Contains([]velerov1.BackupPhase{
		velerov1.BackupPhaseQueued, velerov1.BackupPhaseReadyToStart, velerov1.BackupPhaseInProgress,
	}, made.Status.Phase) && made.Status.CompletionTimestamp != nil
	return again || TakenUpTwice(&oadpv1alpha1.VeleroBackup{Status: &made.Status})
}

// BackupsTakenUpTwice names Velero's Backups, of those made for a namespace's objects, that Velero has taken up twice.
func BackupsTakenUpTwice(ctx context.Context, as client.Reader, namespace string) ([]string, error) {
	var backups velerov1.BackupList
	if err := as.List(ctx, &backups, client.InNamespace(OADPNamespace)); err != nil {
		return nil, fmt.Errorf("list Velero's Backups: %w", err)
	}
	var twice []string
	for i := range backups.Items {
		made := &backups.Items[i]
		if made.Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation] == namespace && BackupTakenUpTwice(made) {
			twice = append(twice, made.Name)
		}
	}
	return twice, nil
}

// HandedOutTwice says whether Velero's queue has handed a Backup out twice, by Velero's log: one that is Completed may be taken
// up again then.
func (e *Env) HandedOutTwice(backup string) bool {
	log, err := os.ReadFile(e.Component(Velero).LogPath())
	return err == nil && bytes.Count(log, []byte(`msg="Dequeueing backup `+backup+`, moving to ReadyToStart"`)) > 1
}

// DefaultStorageLocation is the name of the BackupStorageLocation that Velero starts with.
const DefaultStorageLocation = "default"

func (e *Env) hasVelero() bool { return e.hasS3() && !e.without(Velero) }

// startVelero starts Velero when the control plane and the S3 server are there.
func (e *Env) startVelero(ctx context.Context, kubernetes, s3 *gate) error {
	if !e.hasVelero() {
		return nil
	}
	if err := kubernetes.wait(ctx); err != nil {
		return err
	}
	if err := s3.wait(ctx); err != nil {
		return err
	}
	if err := e.Apply(ctx, e.veleroDeployment(), e.storageLocation(), e.veleroSecret()); err != nil {
		return err
	}
	if err := os.WriteFile(e.veleroKeys(), e.storage.root().CredentialsFile(), 0o600); err != nil {
		return fmt.Errorf("write the S3 server's root credentials for Velero: %w", err)
	}
	taken, err := freePorts.take(3)
	if err != nil {
		return err
	}
	metrics, profiler, manager := address(taken[0]), address(taken[1]), address(taken[2])
	_, err = e.launch(ctx, command{
		name: Velero, kind: Velero, path: e.bin[tools.Velero],
		args: append([]string{ // "server" must come first: Velero starts its plugins with the arguments that follow it
			"server", "--namespace", OADPNamespace, "--plugin-dir", filepath.Dir(e.bin[tools.VeleroPluginForAWS]),
			"--metrics-address", metrics, "--profiler-address", profiler, "--default-volumes-to-fs-backup=false", withoutInformerCache,
			"--backup-sync-period", "1m", "--store-validation-frequency", "10s", "--client-qps", "500", "--client-burst", "1000",
			"--log-level", "info",
		}, e.options.VeleroArgs...),
		env:       append(e.veleroEnv(), "VELERO_MANAGER_METRICS_ADDRESS="+manager), // see test/tools/velero
		addresses: map[string]string{"metrics": metrics},
		ready:     func(ctx context.Context) error { return e.veleroReady(ctx, manager) },
	})
	return err
}

func (e *Env) veleroKeys() string { return e.path("pki", "s3-root-credentials") }

func (e *Env) veleroEnv() []string {
	return []string{
		"KUBECONFIG=" + e.Kubeconfig(veleroUser), "VELERO_SCRATCH_DIR=" + e.path("tmp"), "AWS_EC2_METADATA_DISABLED=true",
		// Not by the Secret: Velero writes that to a file again for each use, and its plugins may read it half written. Not as
		// variables of their own either: the plugin would prefer them to the credentials of any storage location.
		"AWS_SHARED_CREDENTIALS_FILE=" + e.veleroKeys(),
	}
}

// SyncBackups has Velero's controller check storage locations now, for backups that the cluster does not know. The server,
// which is not disturbed, does so once a minute.
func (e *Env) SyncBackups(ctx context.Context, locations ...string) error {
	args := []string{"sync-backups", "--namespace", OADPNamespace, "--plugin-dir", filepath.Dir(e.bin[tools.VeleroPluginForAWS])}
	cmd := exec.CommandContext(ctx, e.bin[tools.Velero], append(args, locations...)...)
	cmd.Env = append(e.baseEnv(), e.veleroEnv()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("velero sync-backups: %w: %s", err, out)
	}
	return nil
}

// veleroKinds asks the velero command for its CustomResourceDefinitions, so that they are those of the version in use.
func (e *Env) veleroKinds(ctx context.Context) ([]*unstructured.Unstructured, error) {
	cmd := exec.CommandContext(ctx, e.bin[tools.Velero], "install", "--crds-only", "--dry-run", "-o", "yaml")
	cmd.Env = append(e.baseEnv(), "KUBECONFIG="+e.Kubeconfig(veleroUser))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("velero install --crds-only: %w: %s", err, stderr.Bytes())
	}
	kinds, err := ReadObjects(out)
	if err != nil {
		return nil, fmt.Errorf("read the output of velero install --crds-only: %w", err)
	}
	return kinds, nil
}

// veleroReady: its managers serve their metrics, and it found the storage location to be usable.
func (e *Env) veleroReady(ctx context.Context, manager string) error {
	if err := httpReady("http://"+manager+"/metrics", "")(ctx); err != nil {
		return err
	}
	location := e.storageLocation()
	if err := e.client.Get(ctx, client.ObjectKeyFromObject(location), location); err != nil {
		return err
	}
	phase, _, _ := unstructured.NestedString(location.Object, "status", "phase")
	if phase != "Available" {
		message, _, _ := unstructured.NestedString(location.Object, "status", "message")
		return errors.New("backup storage location " + location.GetName() + " is " + phase + ", not Available: " + message)
	}
	return nil
}

func (e *Env) storageLocation() *unstructured.Unstructured {
	return object("velero.io/v1", "BackupStorageLocation", OADPNamespace, DefaultStorageLocation, map[string]any{
		"spec": map[string]any{
			"default": true, "provider": "aws",
			"objectStorage": map[string]any{"bucket": bucket, "prefix": e.storage.Prefix},
			"config": map[string]any{
				"region": e.storage.Region, "s3ForcePathStyle": "true", "s3Url": e.storage.Endpoint, "checksumAlgorithm": "",
			},
		},
	})
}

// veleroSecret is that of an installed Velero: other programs that read the default location find its keys there.
func (e *Env) veleroSecret() *unstructured.Unstructured {
	return object("v1", "Secret", OADPNamespace, "cloud-credentials", map[string]any{
		"stringData": map[string]any{"cloud": string(e.storage.root().CredentialsFile())},
	})
}

// withoutInformerCache: with it one file in a tenant's bucket has Velero 1.18 wait for ever, and everybody's restores with it.
const withoutInformerCache = "--disable-informer-cache"

// veleroArgs are those that its Deployment has in any case.
func veleroArgs() []any { return []any{"server", withoutInformerCache} }

// veleroDeployment stands for the server, which is no pod here: a restore reads a Deployment of this name.
func (e *Env) veleroDeployment(more ...string) *unstructured.Unstructured {
	labels := map[string]any{"app": "velero"}
	args := veleroArgs()
	for _, arg := range more {
		args = append(args, arg)
	}
	return object("apps/v1", "Deployment", OADPNamespace, "velero", map[string]any{
		"spec": map[string]any{
			"replicas": int64(0),
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "velero", "image": "velero", "args": args,
				}}},
			},
		},
	})
}
