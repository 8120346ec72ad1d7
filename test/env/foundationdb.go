package env

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
)

// InstallFDBClusters makes the FoundationDB operator's kind FoundationDBCluster known, without its schema.
func (e *Env) InstallFDBClusters(ctx context.Context) error {
	version := foundationdbv1beta2.GroupVersion
	return e.InstallKinds(ctx, SchemalessKind{
		Group: version.Group, Version: version.Version, Kind: "FoundationDBCluster", Plural: "foundationdbclusters",
	})
}

// CreateFDBCluster stands in for the FoundationDB operator: it makes a FoundationDBCluster of a database that runs a version, and
// the ConfigMap with its cluster file. It may be called again with another version or connection string.
func (e *Env) CreateFDBCluster(ctx context.Context, namespace, name, version, connectionString string) error {
	files := object("v1", "ConfigMap", namespace, name+"-config", map[string]any{
		"data": map[string]any{"cluster-file": connectionString, "running-version": version},
	})
	cluster := object(foundationdbv1beta2.GroupVersion.String(), "FoundationDBCluster", namespace, name, map[string]any{
		"spec": map[string]any{"version": version},
	})
	if err := e.Apply(ctx, files, cluster); err != nil {
		return fmt.Errorf("create FoundationDBCluster %s/%s: %w", namespace, name, err)
	}
	status := fmt.Sprintf(`{"status":{"connectionString":%q,"runningVersion":%q}}`, connectionString, version)
	patch := client.RawPatch(types.MergePatchType, []byte(status))
	if err := e.client.Status().Patch(ctx, cluster.DeepCopy(), patch); err != nil {
		return fmt.Errorf("write the status of FoundationDBCluster %s/%s: %w", namespace, name, err)
	}
	return nil
}
