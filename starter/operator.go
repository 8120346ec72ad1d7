package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
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
	// oadpNamespace holds the approval requests.
	oadpNamespace string
}

// bind adds the flags of a command that asks Temporal too.
func (f *operatorFlags) bind(command *cobra.Command) {
	f.bindKubernetes(command)
	command.Flags().StringVar(&f.clusterID, "cluster-id", "default", "ID of the Kubernetes cluster, as the worker has it")
	process.BindPayloadKeysDir(command.Flags(), &f.payloadKeysDir)
}

// bindKubernetes adds the flags of a command that asks the API server alone.
func (f *operatorFlags) bindKubernetes(command *cobra.Command) {
	command.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "path of the kubeconfig (default: as kubectl finds it)")
	command.Flags().StringVar(&f.oadpNamespace, "oadp-namespace", "openshift-adp",
		"namespace in which Velero runs: the approval requests are there")
	command.Flags().StringVarP(&f.output, "output", "o", "table", "table, json or yaml")
}

func (f *operatorFlags) validate() error {
	if !process.ValidClusterID(f.clusterID) {
		return errors.New("--cluster-id: want " + process.WantClusterID)
	}
	return f.validateKubernetes()
}

func (f *operatorFlags) validateKubernetes() error {
	if len(validation.IsDNS1123Label(f.oadpNamespace)) > 0 {
		return errors.New("--oadp-namespace: want the name of a namespace")
	}
	switch f.output {
	case "table", "json", "yaml":
		return nil
	}
	return errors.New("--output: want table, json or yaml")
}

// kubernetes returns a client with the rights of the person who runs the command.
func (f *operatorFlags) kubernetes() (client.Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	kubeClient, err := client.New(config, client.Options{Scheme: k8s.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("create Kubernetes client: %w", err)
	}
	return kubeClient, nil
}

// connect returns clients for the cluster and for Temporal.
func (f *operatorFlags) connect() (client.Client, *connect.Temporal, error) {
	kubeClient, err := f.kubernetes()
	if err != nil {
		return nil, nil, err
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

// tenantObject reads the argument that names a tenant's object.
func tenantObject(arg string) (types.NamespacedName, error) {
	namespace, name, found := strings.Cut(arg, "/")
	if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, fmt.Errorf("%q: want NAMESPACE/NAME", arg)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
