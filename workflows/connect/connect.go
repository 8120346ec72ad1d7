package connect

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"

	"holdfast.dev/holdfast/workflows/codec"
	"holdfast.dev/holdfast/workflows/contract"
)

// Temporal is a client, the namespace that it speaks to, and the keys of its payloads.
type Temporal struct {
	client.Client
	Namespace   string
	PayloadKeys *codec.Keys
	// Converter reads what Temporal keeps, such as a memo.
	Converter converter.DataConverter

	endpoint  string // where and how it connects, for errors
	address   string
	authority string
	tls       *tls.Config // nil without TLS
	// accepted is when the server was last seen to accept the search attributes; nil since it did not answer.
	accepted atomic.Pointer[time.Time]
}

// Options are what a process adds to the environment's settings.
type Options struct {
	Logger *zap.Logger
	// Metrics counts what the SDK does; nil means nobody.
	Metrics client.MetricsHandler
	// PayloadKeysDir holds the keys that encrypt what the client sends and read what it gets; "" means none.
	PayloadKeysDir string
}

// Lazy returns a client that connects at first use, so that a process can start, and say that it is not ready, while
// Temporal is away. An error means that the environment or the keys are wrong.
func Lazy(own Options) (*Temporal, error) {
	keys, err := codec.Open(own.PayloadKeysDir)
	if err != nil {
		return nil, err
	}
	options, err := settings()
	if err != nil {
		return nil, fmt.Errorf("read Temporal's connection settings (TEMPORAL_* environment variables): %w", err)
	}
	options.Logger = log.NewStructuredLogger(slog.New(zapslog.NewHandler(own.Logger.Core())))
	options.MetricsHandler = own.Metrics
	options.DataConverter = codec.DataConverter(keys)
	options.FailureConverter = codec.FailureConverter(keys)
	lazy, err := client.NewLazyClient(options)
	if err != nil {
		return nil, fmt.Errorf("create Temporal client: %w", err)
	}
	namespace := cmp.Or(options.Namespace, client.DefaultNamespace)
	return &Temporal{
		Client: lazy, Namespace: namespace, PayloadKeys: keys, Converter: options.DataConverter, endpoint: endpointOf(&options),
		address:   cmp.Or(options.HostPort, client.DefaultHostPort),
		authority: options.ConnectionOptions.Authority, tls: options.ConnectionOptions.TLS,
	}, nil
}

// settings reads those of Temporal's own tools.
func settings() (client.Options, error) {
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{})
	if err != nil {
		return client.Options{}, err
	}
	options, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err == nil {
		renew(&options, profile.TLS)
	}
	return options, err
}

// Address is where Temporal's frontend is: host:port.
func (t *Temporal) Address() string { return t.address }

// endpointOf says in words what decides whether a server lets the client in.
func endpointOf(options *client.Options) string {
	address := cmp.Or(options.HostPort, client.DefaultHostPort)
	switch config := options.ConnectionOptions.TLS; {
	case config == nil:
		address += " without TLS"
	case len(config.Certificates) > 0, config.GetClientCertificate != nil:
		address += " with TLS and a client certificate"
	default:
		address += " with TLS, without a client certificate"
	}
	if options.Credentials != nil {
		address += ", with an API key"
	}
	return address
}

// Ping returns nil when Temporal answers. The error says how it was called: a server that refuses everybody often does no more
// than close the connection.
func (t *Temporal) Ping(ctx context.Context) error {
	if _, err := t.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		t.accepted.Store(nil) // what comes back may have another database
		return fmt.Errorf("%s: %w", t.endpoint, err)
	}
	return nil
}

// QueryMetadata is the SDK's built-in query for what a workflow says of itself, current details among it.
const QueryMetadata = "__temporal_workflow_metadata"

const (
	// AttributesInterval is how often a process should call EnsureSearchAttributes.
	AttributesInterval = 15 * time.Second
	// acceptedFor is how long it asks no more after the server has accepted them. Temporal limits queries to 10 a second in a
	// namespace for each frontend (frontend.namespaceRPS.visibility), and all processes of a fleet ask.
	acceptedFor = 2*time.Minute - AttributesInterval/2
)

// A process that waits for Temporal, or for the API server, checks again after awaitRetry. A check may take awaitTimeout.
const (
	awaitRetry   = 2 * time.Second
	awaitTimeout = 30 * time.Second
)

// AwaitSearchAttributes registers the search attributes and returns when the server accepts them in queries, which can
// take some seconds, or ctx ends. Where the server forbids registration it keeps checking, and logs the command that an
// operator must run.
func (t *Temporal) AwaitSearchAttributes(ctx context.Context, logger *zap.Logger) error {
	return await(ctx, logger, "waiting for Temporal's search attributes", t.EnsureSearchAttributes)
}

// await returns when check does not fail any more, or ctx ends. It logs each new reason.
func await(ctx context.Context, logger *zap.Logger, message string, check func(context.Context) error) error {
	var last string
	for {
		limited, cancel := context.WithTimeout(ctx, awaitTimeout)
		err := check(limited)
		cancel()
		if err == nil {
			return nil
		}
		if reason := err.Error(); reason != last {
			logger.Warn(message, zap.Error(err))
			last = reason
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(awaitRetry):
		}
	}
}

// EnsureSearchAttributes registers the search attributes that the server does not know, and returns an error as long as it
// does not accept them. To be called now and then: a server that lost its database has forgotten them. It asks every other
// minute, and after the server did not answer Ping.
func (t *Temporal) EnsureSearchAttributes(ctx context.Context) error {
	accepted := t.accepted.Load()
	if accepted != nil && time.Since(*accepted) < acceptedFor {
		return nil
	}
	checkErr := t.checkSearchAttributes(ctx)
	var unknown *serviceerror.InvalidArgument
	var busy *serviceerror.ResourceExhausted
	switch {
	case checkErr == nil:
		now := time.Now()
		t.accepted.CompareAndSwap(accepted, &now)
		return nil
	case errors.As(checkErr, &busy) && accepted != nil:
		return nil // nothing says that they are not accepted any more
	case !errors.As(checkErr, &unknown):
		return checkErr
	}
	t.accepted.Store(nil)
	return t.registerSearchAttributes(ctx, checkErr)
}

// registerSearchAttributes registers those that the server does not know; checkErr is what it has said.
func (t *Temporal) registerSearchAttributes(ctx context.Context, checkErr error) error {
	missing := map[string]enumspb.IndexedValueType{}
	for _, name := range contract.SearchAttributeNames() {
		missing[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	listed, err := t.OperatorService().ListSearchAttributes(ctx,
		&operatorservice.ListSearchAttributesRequest{Namespace: t.Namespace})
	if err == nil {
		for name := range listed.CustomAttributes {
			delete(missing, name)
		}
	}
	if len(missing) == 0 {
		return fmt.Errorf("registered, not yet in use: %w", checkErr)
	}
	_, err = t.OperatorService().AddSearchAttributes(ctx,
		&operatorservice.AddSearchAttributesRequest{Namespace: t.Namespace, SearchAttributes: missing})
	var exists *serviceerror.AlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("register search attributes: %w; an operator can do it with: %s", err, t.registerCommand())
	}
	return t.checkSearchAttributes(ctx)
}

// checkSearchAttributes asks for a count that uses every attribute: the server knows them if it answers. It goes around the SDK's
// client, which would send the query again and again while Temporal refuses it for their number.
func (t *Temporal) checkSearchAttributes(ctx context.Context) error {
	var terms []string
	for _, name := range contract.SearchAttributeNames() {
		terms = append(terms, name+` = "none"`)
	}
	_, err := t.WorkflowService().CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: t.Namespace, Query: strings.Join(terms, " AND "),
	})
	return err
}

func (t *Temporal) registerCommand() string {
	command := "temporal operator search-attribute create --namespace " + t.Namespace
	for _, name := range contract.SearchAttributeNames() {
		command += " --name " + name + " --type Keyword"
	}
	return command
}
