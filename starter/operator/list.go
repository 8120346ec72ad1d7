package operator

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// Listed is what a row says of any object of a tenant's.
type Listed struct {
	Namespace   string    `json:"namespace"`
	Name        string    `json:"name"`
	Phase       string    `json:"phase,omitempty"`
	VeleroPhase string    `json:"veleroPhase,omitempty"`
	Created     time.Time `json:"created"`
	// Workflow is "running", "none" or "unknown" (Temporal did not answer). A settled object needs none.
	Workflow string `json:"workflow"`
}

// lister lists the objects of one kind in a tenant's namespace, or in all: the rows that programs read, and their table.
type lister func(
	ctx context.Context, flags *Flags, namespace string, warnings io.Writer,
) (rows any, table func(io.Writer) error, err error)

// listerOf makes the lister of a kind of the tenants' objects: L is the type of the API server's list, row makes a row of an
// object and what is known of any, and columns are those of the table.
func listerOf[L any, List interface {
	*L
	client.ObjectList
}, O client.Object, Row any](kind contract.Kind, columns []Column[Row], row func(O, Listed) Row) lister {
	return func(
		ctx context.Context, flags *Flags, namespace string, warnings io.Writer,
	) (any, func(io.Writer) error, error) {
		kubeClient, temporal, err := flags.Connect()
		if err != nil {
			return nil, nil, err
		}
		defer temporal.Close()
		list := List(new(L))
		if err := kubeClient.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, nil, fmt.Errorf("list %ss: %w", kind.Kubernetes, err)
		}
		rows := RowsOf(list, kind, flags.ClusterID, runningOrUnknown(ctx, temporal, flags.ClusterID, warnings), row)
		return rows, func(out io.Writer) error { return PrintRows(out, columns, rows) }, nil
	}
}

// RowsOf makes the rows of a list. running are the IDs of the workflows that run; nil if that is not known.
func RowsOf[O client.Object, Row any](
	list client.ObjectList, kind contract.Kind, clusterID string, running map[string]bool, row func(O, Listed) Row,
) []Row {
	rows := make([]Row, 0, meta.LenList(list))
	_ = meta.EachListItem(list, func(item runtime.Object) error { // the function has no error, and the list is one
		object := item.(O)
		rows = append(rows, row(object, Listed{
			Namespace: object.GetNamespace(), Name: object.GetName(), Created: object.GetCreationTimestamp().Time,
			Workflow: workflowOf(clusterID, kind, object, running),
		}))
		return nil
	})
	return rows
}

// Column is one of a table.
type Column[Row any] struct {
	title string
	value func(Row) string
}

// NewColumn returns the column with that title, whose value is made from a row.
func NewColumn[Row any](title string, value func(Row) string) Column[Row] {
	return Column[Row]{title: title, value: value}
}

// PrintRows writes rows as a table with those columns.
func PrintRows[Row any](out io.Writer, columns []Column[Row], rows []Row) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	line := func(cell func(Column[Row]) string) {
		cells := make([]string, 0, len(columns))
		for _, c := range columns {
			cells = append(cells, cell(c))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	line(func(c Column[Row]) string { return c.title })
	for _, row := range rows {
		line(func(c Column[Row]) string { return c.value(row) })
	}
	return table.Flush()
}

// PrintPart writes rows, if there are any, below a title and an empty line.
func PrintPart[Row any](out io.Writer, title string, columns []Column[Row], rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintf(out, "\n%s:\n", title)
	return PrintRows(out, columns, rows)
}

// ColumnsOf returns the columns of a kind: those of every kind, and its own between the phase and the age.
func ColumnsOf[Row any](common func(Row) Listed, own ...Column[Row]) []Column[Row] {
	of := func(title string, value func(Listed) string) Column[Row] {
		return Column[Row]{title, func(row Row) string { return value(common(row)) }}
	}
	columns := []Column[Row]{
		of("NAMESPACE", func(l Listed) string { return l.Namespace }),
		of("NAME", func(l Listed) string { return l.Name }),
		of("PHASE", func(l Listed) string { return l.Phase }),
	}
	return append(append(columns, own...),
		of("AGE", func(l Listed) string { return duration.HumanDuration(time.Since(l.Created)) }),
		of("WORKFLOW", func(l Listed) string { return l.Workflow }),
	)
}

// Number shows one that may not be known.
func Number[T int | int32](n *T) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(int(*n))
}

// Moment shows a time that may not be known.
func Moment[T interface{ UTC() time.Time }](at *T) string {
	if at == nil {
		return ""
	}
	return (*at).UTC().Format(time.RFC3339)
}

// Seconds shows a duration that may not be known.
func Seconds(number *int64) string {
	if number == nil {
		return ""
	}
	return fmt.Sprintf("%ds", *number)
}

// workflowOf is "running", "none" or, if Temporal did not answer, "unknown".
func workflowOf(clusterID string, kind contract.Kind, object client.Object, running map[string]bool) string {
	switch {
	case running == nil:
		return "unknown"
	case running[contract.WorkflowID(clusterID, kind, RefOf(object))]:
		return "running"
	}
	return "none"
}

// RefOf names an object as its workflow's ID does.
func RefOf(object client.Object) contract.ObjectRef {
	return contract.ObjectRef{Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID())}
}

// runningOrUnknown is runningWorkflows for a list that is worth showing while Temporal is away.
func runningOrUnknown(ctx context.Context, temporal *connect.Temporal, clusterID string, warnings io.Writer) map[string]bool {
	running, err := runningWorkflows(ctx, temporal, clusterID)
	if err != nil {
		fmt.Fprintf(warnings, "holdfast: Temporal does not answer, workflows are shown as unknown: %v\n", err)
	}
	return running
}

// runningWorkflows returns the IDs of the cluster's workflows that run, nil if Temporal does not answer.
func runningWorkflows(ctx context.Context, temporal *connect.Temporal, clusterID string) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	running := map[string]bool{}
	var page []byte
	for {
		answer, err := temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace:     temporal.Namespace,
			NextPageToken: page,
			Query: fmt.Sprintf("%s = '%s' AND ExecutionStatus = 'Running'",
				contract.AttributeCluster.GetName(), clusterID),
		})
		if err != nil {
			return nil, err
		}
		for _, execution := range answer.Executions {
			running[execution.Execution.WorkflowId] = true
		}
		if page = answer.NextPageToken; len(page) == 0 {
			return running, nil
		}
	}
}
