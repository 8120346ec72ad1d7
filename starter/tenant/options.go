package tenant

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
)

// fieldOwner is whose the fields are that the commands write.
const fieldOwner = "kubectl-holdfast"

// options are what all commands share: kubectl's flags, and where they write to.
type options struct {
	genericiooptions.IOStreams
	config *genericclioptions.ConfigFlags
}

func newOptions(streams genericiooptions.IOStreams) *options {
	warnings := rest.NewWarningWriter(streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	config := genericclioptions.NewConfigFlags(true)
	config = config.WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.WarningHandler = warnings
		return config
	})
	return &options{IOStreams: streams, config: config}
}

// cluster is the API server as the tenant reaches it, and the namespace that the command is about.
type cluster struct {
	client.WithWatch
	namespace string
}

func (o *options) cluster() (*cluster, error) {
	namespace, _, err := o.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config, err := o.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	made, err := client.NewWithWatch(config, client.Options{Scheme: k8s.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("create the client: %w", err)
	}
	return &cluster{made, namespace}, nil
}

// get reads an object of the namespace.
func (c *cluster) get(command *cobra.Command, kind kind, name string) (client.Object, error) {
	object := kind.object()
	if err := c.Get(command.Context(), client.ObjectKey{Namespace: c.namespace, Name: name}, object); err != nil {
		return nil, c.explain(kind, "get", name, err)
	}
	return object, nil
}

// explain says what a request was about that has failed, and what to do.
func (c *cluster) explain(kind kind, verb, name string, err error) error {
	what := strings.TrimSpace(fmt.Sprintf("%s %s %s", verb, kind.noun, name))
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%s: Holdfast is not installed in this cluster: %w", what, err)
	case apierrors.IsNotFound(err) && verb != "create":
		return fmt.Errorf("%s: there is none of that name in namespace %s (kubectl holdfast %s get)",
			what, c.namespace, kind.noun)
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s: namespace %s has one of that name already; choose another", what, c.namespace)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w (role edit of the namespace is needed)", what, err)
	}
	return fmt.Errorf("%s in namespace %s: %w", what, c.namespace, err)
}

// validName returns an error if that cannot be an object's name.
func validName(what, name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("%s %q: %s", what, name, problems[0])
	}
	return nil
}

// waiting are the flags of a command that can wait.
type waiting struct {
	wait    bool
	timeout time.Duration
	// until is when the timeout is over, from the first wait on.
	until time.Time
	// machine: standard output is for a program, which has it already.
	machine bool
}

func (w *waiting) bind(flags *pflag.FlagSet) {
	flags.BoolVarP(&w.wait, "wait", "w", false, "wait for the end, and show the progress")
	w.bindTimeout(flags)
}

func (w *waiting) bindTimeout(flags *pflag.FlagSet) {
	flags.DurationVar(&w.timeout, "timeout", 0,
		"how long to wait at most, for example 30m (0: as long as it takes); it goes on afterwards")
}

func (w *waiting) validate(flags *pflag.FlagSet) error {
	if w.timeout < 0 {
		return errors.New("--timeout: must be a duration of 0 or more")
	}
	if flags.Lookup("wait") != nil && flags.Changed("timeout") && !w.wait {
		return errors.New("--timeout: must be with --wait")
	}
	return nil
}

// creation are the flags of a command that creates an object.
type creation struct {
	waiting
	printing *genericclioptions.PrintFlags
	dryRun   string
}

func newCreation() *creation {
	return &creation{printing: genericclioptions.NewPrintFlags("created")}
}

func (c *creation) bind(command *cobra.Command) {
	c.waiting.bind(command.Flags())
	c.printing.AddFlags(command)
	command.Flags().StringVar(&c.dryRun, "dry-run", "none",
		"none, client (print the object and send nothing) or server (have the API server validate it, and keep nothing)")
}

func (c *creation) validate(flags *pflag.FlagSet) error {
	switch c.dryRun {
	case "none":
	case "client", "server":
		if c.wait {
			return errors.New("--wait: nothing comes of a --dry-run")
		}
	default:
		return errors.New("--dry-run: must be none, client or server")
	}
	return c.waiting.validate(flags)
}

// forProgram reports whether the flags choose an output that a program reads.
func forProgram(flags *genericclioptions.PrintFlags) bool {
	return *flags.OutputFormat != "" || *flags.TemplatePrinterFlags.TemplateArgument != ""
}

// create creates an object, and prints it. With --dry-run it only prints it, and returns nil.
func (o *options) create(
	command *cobra.Command, c *creation, to *cluster, kind kind, object client.Object,
) (client.Object, error) {
	if c.dryRun != "none" {
		if err := c.printing.Complete("%s (" + c.dryRun + " dry run)"); err != nil {
			return nil, err
		}
	}
	printer, err := c.printing.ToPrinter()
	if err != nil {
		return nil, fmt.Errorf("--output: %w", err)
	}
	object.SetNamespace(to.namespace)
	made, err := lean(object)
	if err != nil {
		return nil, err
	}
	how := []client.CreateOption{client.FieldOwner(fieldOwner)}
	if c.dryRun == "server" {
		how = append(how, client.DryRunAll)
	}
	if c.dryRun != "client" {
		if err := to.Create(command.Context(), made, how...); err != nil {
			return nil, to.explain(kind, "create", object.GetName(), err)
		}
	}
	c.machine = forProgram(c.printing)
	if made.GetName() == "" && (!c.machine || *c.printing.OutputFormat == "name") {
		made.SetName(made.GetGenerateName() + "…") // as the API server would make it
	}
	if err := printer.PrintObj(made, o.Out); err != nil || c.dryRun != "none" {
		return nil, err
	}
	typed := kind.object() // as those that are followed
	return typed, runtime.DefaultUnstructuredConverter.FromUnstructured(made.Object, typed)
}

// createAndAwait creates an object and, with --wait, waits until it is over.
func (o *options) createAndAwait(command *cobra.Command, c *creation, to *cluster, kind kind, object client.Object) error {
	made, err := o.create(command, c, to, kind, object)
	if err != nil || made == nil || !c.wait {
		return err
	}
	return o.await(command, &c.waiting, to, kind, made)
}

// suffixLength is that of what the API server appends to metadata.generateName.
const suffixLength = 5

// named sets an object's name, or has the API server make one that begins so.
func named(of *metav1.ObjectMeta, args []string, otherwise string) error {
	if len(args) == 0 {
		const longest = 63
		of.GenerateName = strings.TrimRight(otherwise[:min(len(otherwise), longest-suffixLength-1)], ".-") + "-"
		return nil
	}
	of.Name = args[0]
	return validName("name", args[0])
}
