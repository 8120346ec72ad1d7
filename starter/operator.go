package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/process"
	"holdfast.dev/holdfast/workflows/connect"
)

// operatorFlags are those of the commands that a person runs, with that person's own kubeconfig and rights.
type operatorFlags struct {
	kubeconfig string
	clusterID  string
	output     string
	// payloadKeysDir is needed to read the answers to queries.
	payloadKeysDir string
}

func (f *operatorFlags) bind(command *cobra.Command) {
	command.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "path of the kubeconfig (default: as kubectl finds it)")
	command.Flags().StringVar(&f.clusterID, "cluster-id", "default", "ID of the Kubernetes cluster, as the worker has it")
	process.BindPayloadKeysDir(command.Flags(), &f.payloadKeysDir)
	command.Flags().StringVarP(&f.output, "output", "o", "table", "table, json or yaml")
}

func (f *operatorFlags) validate() error {
	if !process.ValidClusterID(f.clusterID) {
		return errors.New("--cluster-id: want 1 to 63 lower-case letters, digits and inner hyphens")
	}
	switch f.output {
	case "table", "json", "yaml":
		return nil
	}
	return fmt.Errorf("--output: want table, json or yaml")
}

// connect returns clients for the cluster and for Temporal.
func (f *operatorFlags) connect() (client.Client, *connect.Temporal, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	kubeClient, err := client.New(config, client.Options{Scheme: k8s.Scheme()})
	if err != nil {
		return nil, nil, fmt.Errorf("create Kubernetes client: %w", err)
	}
	temporal, err := connect.Lazy(connect.Options{Logger: zap.NewNop(), PayloadKeysDir: f.payloadKeysDir})
	if err != nil {
		return nil, nil, err
	}
	return kubeClient, temporal, nil
}

// print writes value as JSON or YAML, or calls table.
func (f *operatorFlags) print(out io.Writer, value any, table func(io.Writer) error) error {
	var data []byte
	var err error
	switch f.output {
	case "json":
		data, err = json.MarshalIndent(value, "", "  ")
		data = append(data, '\n')
	case "yaml":
		data, err = yaml.Marshal(value)
	default:
		return table(out)
	}
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}
