package tenant

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
)

type getFlags struct {
	printing      *genericclioptions.PrintFlags
	allNamespaces bool
	selector      string
}

// getCommand shows objects as kubectl get does: the API server makes the table.
func (o *options) getCommand(kind kind) *cobra.Command {
	f := getFlags{printing: genericclioptions.NewPrintFlags("")}
	command := &cobra.Command{
		Use: "get [NAME...]", Short: "Show " + kind.noun + "s", ValidArgsFunction: o.more(kind),
		RunE: func(command *cobra.Command, args []string) error {
			done := make(chan error, 1)
			go func() { done <- o.get(kind, &f, args) }()
			select {
			case err := <-done:
				return err
			case <-command.Context().Done(): // cli-runtime's requests do not end with it
				return command.Context().Err()
			}
		},
	}
	f.printing.AddFlags(command)
	if output := command.Flags().Lookup("output"); output != nil {
		output.Usage = "wide, or " + output.Usage
	}
	command.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "of all namespaces")
	command.Flags().StringVarP(&f.selector, "selector", "l", "", "only those with these labels")
	return command
}

// pageSize is how many objects one request lists, as kubectl's do.
const pageSize = 500

func (o *options) get(kind kind, f *getFlags, names []string) error {
	wide := *f.printing.OutputFormat == "wide"
	table := wide || !forProgram(f.printing)
	namespace, _, err := o.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	builder := resource.NewBuilder(o.config).Unstructured().
		NamespaceParam(namespace).DefaultNamespace().AllNamespaces(f.allNamespaces).
		LabelSelectorParam(f.selector).RequestChunksOf(pageSize).
		ResourceTypeOrNameArgs(true, append([]string{kind.resource}, names...)...).
		ContinueOnError().Latest()
	if table {
		result := builder.TransformRequests(asTable).Do()
		return o.printTables(kind, result, printers.PrintOptions{WithNamespace: f.allNamespaces, Wide: wide}, namespace)
	}
	printer, err := f.printing.ToPrinter()
	if err != nil {
		return err
	}
	return printAll(builder.Flatten().Do(), printer, o.Out)
}

// printAll prints the object that is named, or a List of several, and then the error of those that there are not.
func printAll(result *resource.Result, printer printers.ResourcePrinter, out io.Writer) error {
	var single bool
	infos, err := result.IntoSingleItemImplied(&single).Infos()
	if err != nil && (single || len(infos) == 0) {
		return err
	}
	if single && len(infos) == 1 {
		return printer.PrintObj(infos[0].Object, out)
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}}}
	for _, info := range infos {
		list.Items = append(list.Items, *info.Object.(*unstructured.Unstructured))
	}
	return errors.Join(printer.PrintObj(list, out), err)
}

func asTable(request *rest.Request) {
	request.SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json")
}

// printTables prints the tables of an answer under one header.
func (o *options) printTables(kind kind, result *resource.Result, options printers.PrintOptions, namespace string) error {
	infos, err := result.Infos()
	shown := 0
	out := printers.GetNewTabWriter(o.Out)
	for _, info := range infos {
		table, tableErr := decodeTable(info.Object)
		if tableErr != nil {
			return tableErr
		}
		shown += len(table.Rows)
		if len(table.Rows) == 0 {
			continue
		}
		options.NoHeaders = shown > len(table.Rows)
		if err := printers.NewTablePrinter(options).PrintObj(table, out); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if shown == 0 && err == nil {
		where := "in namespace " + namespace
		if options.WithNamespace {
			where = "in any namespace"
		}
		fmt.Fprintf(o.ErrOut, "No %ss found %s.\n", kind.noun, where)
	}
	return err
}

func decodeTable(object runtime.Object) (*metav1.Table, error) {
	content, is := object.(*unstructured.Unstructured)
	if !is {
		return nil, fmt.Errorf("the API server answered with %T; it must be a Table", object)
	}
	table := &metav1.Table{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(content.Object, table)
	if err != nil {
		return nil, fmt.Errorf("read the API server's Table: %w", err)
	}
	for i := range table.Rows {
		row := &table.Rows[i].Object
		if row.Raw == nil {
			continue
		}
		if row.Object, err = runtime.Decode(unstructured.UnstructuredJSONScheme, row.Raw); err != nil {
			return nil, fmt.Errorf("read a row of the API server's Table: %w", err)
		}
	}
	return table, nil
}
