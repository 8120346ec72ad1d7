package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"github.com/vmware-tanzu/velero/pkg/client"
	"github.com/vmware-tanzu/velero/pkg/controller"
	"github.com/vmware-tanzu/velero/pkg/persistence"
	"github.com/vmware-tanzu/velero/pkg/plugin/clientmgmt"
	"github.com/vmware-tanzu/velero/pkg/plugin/clientmgmt/process"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	kbclient "sigs.k8s.io/controller-runtime/pkg/client"
)

// syncCommand has Velero's own controller check storage locations now, once each, instead of at the next minute of a server:
// it brings into the cluster what backups it finds there. A server that runs is not disturbed.
func syncCommand() *cobra.Command {
	var pluginDir string
	factory := client.NewFactory("sync-backups", client.VeleroConfig{})
	command := &cobra.Command{
		Use: "sync-backups LOCATION...", Args: cobra.MinimumNArgs(1), SilenceUsage: true,
		RunE: func(command *cobra.Command, locations []string) error {
			return syncBackups(command.Context(), factory, pluginDir, locations)
		},
	}
	factory.BindFlags(command.Flags())
	command.Flags().StringVar(&pluginDir, "plugin-dir", "/plugins", "folder with Velero's plugins")
	return command
}

func syncBackups(ctx context.Context, factory client.Factory, pluginDir string, locations []string) error {
	logger := logrus.New()
	logger.SetOutput(os.Stderr)
	registry := process.NewRegistry(pluginDir, logger, logger.Level)
	if err := registry.DiscoverPlugins(); err != nil {
		return fmt.Errorf("find the plugins in %s: %w", pluginDir, err)
	}
	cluster, err := factory.KubebuilderClient()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sync-backups-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	plugins := func(logger logrus.FieldLogger) clientmgmt.Manager {
		return clientmgmt.NewManager(logger, logrus.InfoLevel, registry)
	}
	stores := persistence.NewObjectBackupStoreGetter(&credentialFiles{client: cluster, namespace: factory.Namespace(), dir: dir})
	looking := controller.NewBackupSyncReconciler(cluster, factory.Namespace(), 0, plugins, stores, logger)
	for _, location := range locations {
		request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: factory.Namespace(), Name: location}}
		if _, err := looking.Reconcile(ctx, request); err != nil {
			return fmt.Errorf("look into storage location %s: %w", location, err)
		}
	}
	return nil
}

// credentialFiles stands for Velero's own, which no other module may import.
type credentialFiles struct {
	client         kbclient.Client
	namespace, dir string
}

// Path writes a key of a Secret to a file, for a plugin to read.
func (c *credentialFiles) Path(selector *corev1.SecretKeySelector) (string, error) {
	secret := &corev1.Secret{}
	if err := c.client.Get(context.Background(), kbclient.ObjectKey{Namespace: c.namespace, Name: selector.Name}, secret); err != nil {
		return "", fmt.Errorf("get the credentials of a storage location: %w", err)
	}
	file := filepath.Join(c.dir, selector.Name+"-"+selector.Key)
	return file, os.WriteFile(file, secret.Data[selector.Key], 0o600)
}
