package failpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"holdfast.dev/holdfast/workflows/contract"
)

// Environment variables by which a test configures the processes that it starts.
const (
	// EnvURL is the URL for reports of points.
	EnvURL = "HOLDFAST_TEST_POINTS_URL"
	// EnvNamespace is the only tenant's namespace that a watcher serves.
	EnvNamespace = "HOLDFAST_TEST_NAMESPACE"
)

// Signal is the step that stands for the watcher's signals.
const Signal = "signal"

// Form is how a step runs.
type Form string

// The forms of an activity; a signal has none.
const (
	Local   Form = "local"
	Regular Form = "regular"
)

// Point is a moment in the life of a process.
type Point struct {
	// Step is an activity's type, or Signal.
	Step string `json:"step"`
	Form Form   `json:"form,omitempty"`
	// Of distinguishes the uses of one activity: the task of a finalization, the FoundationDB command, the request for a slot.
	Of string `json:"of,omitempty"`
	// After is false before the step and true after it.
	After bool `json:"after"`
}

// CallsAPIServer reports whether the step calls the API server, so that it fails during an outage. ReturnTurn does for some
// objects.
func (p Point) CallsAPIServer() bool {
	switch p.Step {
	case Signal, contract.SignalFDBThrottle.Name, contract.SignalFDBExpiryQueue.Name, contract.StartFDBExpiry.Name,
		contract.ReportFDBTurn.Name, contract.RequestFDBContainer.Name, contract.GiveTurns.Name, contract.ReturnTurn.Name:
		return false
	}
	return true
}

// String returns the point in words.
func (p Point) String() string {
	when := "before"
	if p.After {
		when = "after"
	}
	if p.Form == "" {
		return when + " " + p.Step
	}
	text := fmt.Sprintf("%s %s %s", when, p.Form, p.Step)
	if p.Of != "" {
		text += " " + p.Of
	}
	return text
}

// Report reports to the test and waits for its answer. Without a test it returns at once.
func Report(ctx context.Context, p Point) {
	url := os.Getenv(EnvURL)
	if url == "" {
		return
	}
	body, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	// No deadline: the test decides how long the process waits here.
	request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return // the test is over
	}
	_ = answer.Body.Close()
}

// standing is how long a process may wait at a point in a local activity. The activity's timeout is extended by it, and reduced
// again when the activity really starts.
const standing = 5 * time.Minute

// Interceptor reports every activity of a worker, local ones too.
func Interceptor() interceptor.WorkerInterceptor { return &workers{} }

type workers struct {
	interceptor.WorkerInterceptorBase
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (*workers) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &activities{interceptor.ActivityInboundInterceptorBase{Next: next}}
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (*workers) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &workflows{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type workflows struct {
	interceptor.WorkflowInboundInterceptorBase
}

// Init implements interceptor.WorkflowInboundInterceptor.
func (w *workflows) Init(next interceptor.WorkflowOutboundInterceptor) error {
	return w.Next.Init(&outbound{interceptor.WorkflowOutboundInterceptorBase{Next: next}})
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
}

// ExecuteLocalActivity implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) ExecuteLocalActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	options := workflow.GetLocalActivityOptions(ctx)
	options.StartToCloseTimeout += standing
	return o.Next.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, options), activityType, args...)
}

type activities struct {
	interceptor.ActivityInboundInterceptorBase
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (a *activities) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	point := Point{Step: info.ActivityType.Name, Form: Regular, Of: of(in.Args)}
	if info.IsLocalActivity {
		point.Form = Local
	}
	deadline, _ := ctx.Deadline()
	limit := time.Until(deadline) - standing
	Report(ctx, point)
	acting, cancel := ctx, context.CancelFunc(func() {})
	if info.IsLocalActivity {
		acting, cancel = context.WithTimeout(ctx, limit)
	}
	result, err := a.Next.ExecuteActivity(acting, in)
	cancel()
	switch found := result.(type) {
	case contract.FDBExpiriesFound:
		result = own(found)
	case contract.TurnsFound:
		result = ownTurns(found)
	}
	point.After = true
	Report(ctx, point)
	return result, err
}

// own leaves a queue only the entries of the case's namespace: each case of a test is a Kubernetes cluster of its own to
// Holdfast, but all share one.
func own(found contract.FDBExpiriesFound) contract.FDBExpiriesFound {
	namespace := os.Getenv(EnvNamespace)
	if namespace == "" {
		return found
	}
	found.Entries = slices.DeleteFunc(found.Entries, func(e contract.FDBQueueEntry) bool { return e.Ref.Namespace != namespace })
	found.Turns = slices.DeleteFunc(found.Turns, func(t contract.FDBTurn) bool { return t.Ref.Namespace != namespace })
	return found
}

// ownTurns leaves out who waits or has a turn in other namespaces: they are of other cases.
func ownTurns(found contract.TurnsFound) contract.TurnsFound {
	namespace := os.Getenv(EnvNamespace)
	if namespace == "" {
		return found
	}
	for name, pool := range found.Pools {
		pool.Waiting = slices.DeleteFunc(pool.Waiting, func(m contract.TurnMember) bool { return m.Namespace != namespace })
		pool.Active = slices.DeleteFunc(pool.Active, func(m contract.TurnMember) bool { return m.Namespace != namespace })
		found.Pools[name] = pool
	}
	return found
}

// TheEnd stands for the last record of a finalization; the others are named after the task that begins.
const TheEnd = "end"

func of(args []any) string {
	for _, arg := range args {
		switch in := arg.(type) {
		case contract.FinalizationTaskStep:
			return in.Task
		case contract.FinalizationRecord:
			return begun(in)
		case contract.FDBCommand:
			return string(in.Operation)
		case contract.FDBSlotRequest:
			return string(in.Action)
		case contract.FDBCommandRequest:
			return asked(in)
		case contract.FDBQueueRequest:
			return string(in.Job)
		case contract.FDBExpiryStep:
			return string(in.Job)
		case contract.FDBExpiryInput:
			return string(in.Job)
		case contract.FDBContainerRequest:
			return string(in.Action)
		case contract.FDBPodStep:
			return fmt.Sprintf("%d", in.Number)
		case contract.FDBTurnReports:
			return reported(in)
		}
	}
	return ""
}

// asked returns what the owner of a FoundationDB cluster is asked for; nothing if a backup only reports.
func asked(ask contract.FDBCommandRequest) string {
	switch {
	case ask.Command != nil:
		return string(ask.Command.Operation)
	case ask.Leave:
		return "leave"
	}
	return ""
}

// reported returns what a turn reports.
func reported(report contract.FDBTurnReports) string {
	switch {
	case report.Report == nil:
		return "result"
	case report.Report.Ended:
		return "ended"
	}
	return "closing"
}

func begun(record contract.FinalizationRecord) string {
	for _, task := range record.Tasks {
		if record.EndedAt.IsZero() && !task.StartedAt.IsZero() && task.EndedAt.IsZero() {
			return task.Name
		}
	}
	return TheEnd
}
