package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/env/kubelet"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/tools"
)

const (
	demoFDBBackup  = "sample"
	demoFDBCluster = "sample-cluster"
	demoFDBVersion = "7.3.72"
	demoFDBBucket  = "fdb-backups"
	demoFDBSample  = "deploy/samples/foundationdbbackup.yaml"
)

// withFoundationDB adds what FoundationDB backups need to a stack's options: a kubelet that runs their agents, and tools. These
// are the real ones if FDB_BIN_DIR and FDB_CLUSTER_FILE name them, else their stand-in.
func withFoundationDB(options env.Options) (env.Options, *fdbsim.Sim, error) {
	bin := os.Getenv("FDB_BIN_DIR")
	var sim *fdbsim.Sim
	if bin == "" {
		bin = filepath.Join(options.Dir, "foundationdb", "bin")
		made, err := fdbsim.Install(bin, filepath.Join(options.Dir, "foundationdb", "state"), demoFDBVersion)
		if err != nil {
			return options, nil, err
		}
		sim = made
		options.FDBWorkerArgs = append(options.FDBWorkerArgs, "--fdb-cage-folders="+sim.Store.Dir) // its databases are files
	}
	options.Kubelet = &kubelet.Options{Images: tenantImages, Resolve: kubelet.FDBImages(bin)}
	options.FoundationDB, options.FDBWorkerArgs = true, append(options.FDBWorkerArgs, "--fdb-bin-dir="+bin)
	return options, sim, nil
}

// layFDBCluster makes a database and the FoundationDBCluster of it, as the FoundationDB operator would.
func layFDBCluster(ctx context.Context, stack *env.Env, sim *fdbsim.Sim) error {
	if err := stack.InstallFDBClusters(ctx); err != nil {
		return err
	}
	if err := stack.CreateBucket(demoFDBBucket); err != nil { // FoundationDB's tools cannot make one in us-east-1
		return err
	}
	var connection string
	if sim != nil {
		made, err := sim.NewCluster("sample_cluster", "demo1234")
		if err != nil {
			return err
		}
		if err := sim.Set(made, map[string]string{"orders/1": "one", "orders/2": "two"}); err != nil {
			return err
		}
		connection = made
	} else {
		content, err := os.ReadFile(os.Getenv("FDB_CLUSTER_FILE"))
		if err != nil {
			return fmt.Errorf("FDB_BIN_DIR is set, and FDB_CLUSTER_FILE cannot be read: %w", err)
		}
		connection = strings.TrimSpace(string(content))
	}
	return stack.CreateFDBCluster(ctx, demoNamespace, demoFDBCluster, demoFDBVersion, connection)
}

// fdbSample writes the sample manifest with this stack's object store filled in.
func fdbSample(stack *env.Env) (string, error) {
	root, err := tools.Root()
	if err != nil {
		return "", err
	}
	sample, err := os.ReadFile(filepath.Join(root, demoFDBSample))
	if err != nil {
		return "", err
	}
	storage := stack.Storage()
	address := strings.TrimPrefix(storage.Endpoint, "http://")
	host, _, _ := strings.Cut(address, ":")
	manifest := string(sample)
	for _, change := range [][2]string{
		{"REPLACE-ME@s3.eu-central-1.amazonaws.com", storage.AccessKey + "@" + host},
		{"REPLACE-ME", storage.SecretKey},
		{"region=eu-central-1", "region=" + storage.Region + "\n    - secure_connection=0"},
		{"    bucket: fdb-backups", "    bucket: fdb-backups\n    endpoint: " + address},
	} {
		if !strings.Contains(manifest, change[0]) {
			return "", fmt.Errorf("%s does not hold %q any more", demoFDBSample, change[0])
		}
		manifest = strings.ReplaceAll(manifest, change[0], change[1])
	}
	path := filepath.Join(stack.Dir(), "foundationdbbackup.yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		return "", fmt.Errorf("write the sample: %w", err)
	}
	return path, nil
}

// tellFoundationDB: a FoundationDB cluster is backed up continuously from one apply on, until it is stopped.
func tellFoundationDB(ctx context.Context, s *story, stack *env.Env, tenant client.WithWatch, sim *fdbsim.Sim) error {
	what := "the real tools"
	if sim != nil {
		what = "a stand-in of FoundationDB's tools, since FDB_BIN_DIR is not set"
	}
	s.chapter("A FoundationDB cluster of %s (%s)", demoTenant, what)
	if err := layFDBCluster(ctx, stack, sim); err != nil {
		return err
	}
	manifest, err := fdbSample(stack)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, fmt.Errorf("the FoundationDB backup was not ready within %s", demoLimit))
	defer cancel()
	s.chapter("%s has it backed up continuously: agents, backup, first snapshot (%s)", demoTenant, demoFDBSample)
	f := &follower{
		client: tenant, shown: map[string]string{},
		object: newObject("fdb.holdfast.dev/v1alpha1", "FoundationDBBackup", demoNamespace, demoFDBBackup),
	}
	var reconciled state
	err = f.until(ctx, func() error { return kubectl(ctx, stack, "apply", "-n", demoNamespace, "-f", manifest) },
		func(now state) (bool, error) {
			reconciled = now
			done, _, err := unstructured.NestedBool(now.object.Object, "status", "reconciled")
			return done, err
		})
	if err != nil {
		return err
	}
	s.took("FoundationDB backup: requested -> restorable", reconciled.elapsed)
	if err := kubectl(ctx, stack, "get", "fdbb", "-n", demoNamespace); err != nil {
		return err
	}
	if _, err := asAdmin(ctx, stack, tools.Holdfast, "describe", "fdbbackup", demoNamespace+"/"+demoFDBBackup); err != nil {
		return err
	}
	return stopFDB(ctx, s, stack, f)
}

// stopFDB stops the backup; its data stay.
func stopFDB(ctx context.Context, s *story, stack *env.Env, f *follower) error {
	s.chapter("%s stops it; the data stay", demoTenant)
	stop := func() error {
		return kubectl(ctx, stack, "patch", "fdbb", demoFDBBackup, "-n", demoNamespace, "--type=merge",
			"-p", `{"spec":{"backupState":"Stopped"}}`)
	}
	return f.until(ctx, stop, func(now state) (bool, error) {
		backups, _, err := unstructured.NestedSlice(now.object.Object, "status", "backups")
		if err != nil || len(backups) == 0 {
			return false, errors.Join(err, errors.New("status.backups is empty"))
		}
		last, _ := backups[len(backups)-1].(map[string]any)
		return last["state"] == "Aborted", nil
	})
}
