package operator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

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

// Flags are those of the commands for people, which use the person's own kubeconfig and rights.
type Flags struct {
	kubeconfig string
	ClusterID  string
	Output     string
	// payloadKeysDir is needed to read the answers to queries.
	PayloadKeysDir string
	// oadpNamespace holds the approval requests.
	OADPNamespace string

	checks []func() error // of the flags that were added
}

// Bind adds the flags of a command that calls Temporal too.
func (f *Flags) Bind(command *cobra.Command) {
	f.BindClusterID(command)
	f.BindKubernetes(command)
	process.BindPayloadKeysDir(command.Flags(), &f.PayloadKeysDir)
}

// BindClusterID adds the flag of a command that knows the names which the worker gives.
func (f *Flags) BindClusterID(command *cobra.Command) {
	command.Flags().StringVar(&f.ClusterID, "cluster-id", "default", "ID of the Kubernetes cluster, as the worker has it")
	f.require("--cluster-id: must be "+process.ClusterIDFormat, func() bool { return process.ValidClusterID(f.ClusterID) })
}

// BindKubernetes adds the flags of a command that calls only the API server.
func (f *Flags) BindKubernetes(command *cobra.Command) {
	f.BindCluster(command)
	f.BindOutput(command)
}

// BindCluster adds the flags of a command that calls only the API server, and has an output of its own.
func (f *Flags) BindCluster(command *cobra.Command) {
	command.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "path of the kubeconfig (default: as kubectl finds it)")
	command.Flags().StringVar(&f.OADPNamespace, "oadp-namespace", "openshift-adp",
		"namespace in which Velero runs: the approval requests are there")
	f.require("--oadp-namespace: must be the name of a namespace", func() bool {
		return len(validation.IsDNS1123Label(f.OADPNamespace)) == 0
	})
}

// BindOutput adds the flag of a command that calls neither the API server nor Temporal.
func (f *Flags) BindOutput(command *cobra.Command) {
	command.Flags().StringVarP(&f.Output, "output", "o", "table", "table, json or yaml")
	f.require("--output: must be table, json or yaml", func() bool {
		return slices.Contains([]string{"table", "json", "yaml"}, f.Output)
	})
}

// require has Validate return what must be, unless it is.
func (f *Flags) require(must string, is func() bool) {
	f.checks = append(f.checks, func() error {
		if !is() {
			return errors.New(must)
		}
		return nil
	})
}

// Validate returns one line that names the flag that is wrong, of those that were added.
func (f *Flags) Validate() error {
	for _, check := range f.checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// Kubernetes returns a client with the rights of the person who runs the command.
func (f *Flags) Kubernetes() (client.Client, error) { return f.KubernetesOf("") }

// KubernetesOf is Kubernetes for a context of the kubeconfig; "" is the current one.
func (f *Flags) KubernetesOf(context string) (client.Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil && context != "" {
		return nil, fmt.Errorf("--context %s: %w", context, err)
	}
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	kubeClient, err := client.New(config, client.Options{Scheme: k8s.Scheme(), FieldOwner: "holdfast"})
	if err != nil {
		return nil, fmt.Errorf("create Kubernetes client: %w", err)
	}
	return kubeClient, nil
}

// Connect returns clients for the cluster and for Temporal.
func (f *Flags) Connect() (client.Client, *connect.Temporal, error) {
	kubeClient, err := f.Kubernetes()
	if err != nil {
		return nil, nil, err
	}
	temporal, err := connect.Lazy(connect.Options{Logger: zap.NewNop(), PayloadKeysDir: f.PayloadKeysDir})
	if err != nil {
		return nil, nil, err
	}
	return kubeClient, temporal, nil
}

// Print writes value as JSON or YAML, or calls table. Tenants write some of it: nothing of it steers a terminal.
func (f *Flags) Print(out io.Writer, value any, table func(io.Writer) error) error {
	if f.Output != "json" && f.Output != "yaml" {
		return table(out)
	}
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	data = append(escapeControls(data), '\n')
	if f.Output == "yaml" {
		if data, err = yaml.JSONToYAML(data); err != nil {
			return err
		}
	}
	_, err = out.Write(data)
	return err
}

// escapeControls escapes in JSON the control characters above those of ASCII, which the encoder leaves as they are.
func escapeControls(data []byte) []byte {
	escaped := make([]byte, 0, len(data))
	for _, r := range string(data) {
		if r >= 0x7f && r < 0xa0 {
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
			continue
		}
		escaped = utf8.AppendRune(escaped, r)
	}
	return escaped
}

// TenantObject reads the argument that names a tenant's object.
func TenantObject(arg string) (types.NamespacedName, error) {
	namespace, name, found := strings.Cut(arg, "/")
	if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, fmt.Errorf("%q: must be NAMESPACE/NAME", arg)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
