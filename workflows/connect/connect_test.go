package connect_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"holdfast.dev/holdfast/workflows/connect"
	"holdfast.dev/holdfast/workflows/contract"
)

// server is a Temporal server, as far as search attributes go.
type server struct {
	client.Client
	operatorservice.OperatorServiceClient
	registered map[string]enumspb.IndexedValueType
	// lag is the number of queries that a registration takes to come into use.
	lag              int
	away             error
	back             time.Time // when it is no longer away; never if zero
	noList, noChange error
	changes, queries int
}

func (s *server) temporal() *connect.Temporal {
	return &connect.Temporal{Client: s, Namespace: "tenants"}
}

// OperatorService implements client.Client.
func (s *server) OperatorService() operatorservice.OperatorServiceClient { return s }

// WorkflowService implements client.Client.
func (s *server) WorkflowService() workflowservice.WorkflowServiceClient { return counted{server: s} }

// counted is the server's service of workflows.
type counted struct {
	workflowservice.WorkflowServiceClient

	server *server
}

// CountWorkflowExecutions implements workflowservice.WorkflowServiceClient.
func (q counted) CountWorkflowExecutions(
	_ context.Context, request *workflowservice.CountWorkflowExecutionsRequest, _ ...grpc.CallOption,
) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	return q.server.count(request)
}

func (s *server) count(
	request *workflowservice.CountWorkflowExecutionsRequest,
) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	s.queries++
	if s.away != nil && (s.back.IsZero() || time.Now().Before(s.back)) {
		return nil, s.away
	}
	if request.Namespace != "tenants" {
		return nil, errors.New("another namespace")
	}
	for _, name := range contract.SearchAttributeNames() {
		if _, known := s.registered[name]; !known {
			return nil, serviceerror.NewInvalidArgument("invalid query: column name '" + name + "' is not defined")
		}
	}
	if s.lag > 0 {
		s.lag--
		return nil, serviceerror.NewInvalidArgument("invalid query: column name is not defined")
	}
	return &workflowservice.CountWorkflowExecutionsResponse{}, nil
}

// ListSearchAttributes implements operatorservice.OperatorServiceClient.
func (s *server) ListSearchAttributes(
	context.Context, *operatorservice.ListSearchAttributesRequest, ...grpc.CallOption,
) (*operatorservice.ListSearchAttributesResponse, error) {
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: maps.Clone(s.registered)}, s.noList
}

// AddSearchAttributes implements operatorservice.OperatorServiceClient.
func (s *server) AddSearchAttributes(
	_ context.Context, request *operatorservice.AddSearchAttributesRequest, _ ...grpc.CallOption,
) (*operatorservice.AddSearchAttributesResponse, error) {
	if s.noChange != nil {
		return nil, s.noChange
	}
	s.changes++
	for name, kind := range request.SearchAttributes {
		if _, known := s.registered[name]; known {
			return nil, serviceerror.NewAlreadyExists(name)
		}
		s.registered[name] = kind
	}
	return &operatorservice.AddSearchAttributesResponse{}, nil
}

func all() map[string]enumspb.IndexedValueType {
	names := map[string]enumspb.IndexedValueType{}
	for _, name := range contract.SearchAttributeNames() {
		names[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	return names
}

func without(missing string) map[string]enumspb.IndexedValueType {
	names := all()
	delete(names, missing)
	return names
}

func TestSearchAttributesAreRegisteredIfTheyAreNot(t *testing.T) {
	none := func() map[string]enumspb.IndexedValueType { return map[string]enumspb.IndexedValueType{} }
	denied := serviceerror.NewPermissionDenied("not yours", "")
	tests := map[string]struct {
		server      *server
		wantErr     []string
		wantChanges int
	}{
		"none is":                        {server: &server{registered: none()}, wantChanges: 1},
		"all are":                        {server: &server{registered: all()}},
		"one is not":                     {server: &server{registered: without("HoldfastPhase")}, wantChanges: 1},
		"none is, and listing forbidden": {server: &server{registered: none(), noList: denied}, wantChanges: 1},
		"registered, not yet in use":     {server: &server{registered: all(), lag: 1}, wantErr: []string{"registered, not yet in use"}},
		"Temporal is away":               {server: &server{registered: all(), away: serviceerror.NewUnavailable("no")}, wantErr: []string{"no"}},
		"none is, and changes forbidden": {
			server: &server{registered: none(), noChange: denied},
			wantErr: []string{
				"not yours", "an operator can do it with: temporal operator search-attribute create --namespace tenants",
				"--name HoldfastCluster --type Keyword", "--name HoldfastVeleroPhase --type Keyword",
			},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			err := test.server.temporal().EnsureSearchAttributes(t.Context())
			assert.Equal(t, test.wantChanges, test.server.changes)
			if len(test.wantErr) == 0 {
				require.NoError(t, err)
				assert.Equal(t, all(), test.server.registered)
				return
			}
			for _, want := range test.wantErr {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

// CheckHealth implements client.Client.
func (s *server) CheckHealth(context.Context, *client.CheckHealthRequest) (*client.CheckHealthResponse, error) {
	return &client.CheckHealthResponse{}, s.away
}

// A fleet's processes must not use up the queries that Temporal allows. One that did not answer may have lost what it knew.
func TestSearchAttributesAreSeldomAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{registered: all()}
		temporal := s.temporal()
		ensure := func(times int) {
			for range times {
				require.NoError(t, temporal.EnsureSearchAttributes(t.Context()))
				time.Sleep(connect.AttributesInterval)
			}
		}
		ensure(40)
		assert.Equal(t, 5, s.queries, "in ten minutes")

		s.away = serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "too many queries")
		ensure(8)
		require.ErrorContains(t, s.temporal().EnsureSearchAttributes(t.Context()), "too many", "never accepted")

		s.away, s.registered, s.noChange = nil, map[string]enumspb.IndexedValueType{}, s.away
		time.Sleep(2 * time.Minute)
		require.ErrorContains(t, temporal.EnsureSearchAttributes(t.Context()), "too many", "known to be missing")
		require.ErrorContains(t, temporal.EnsureSearchAttributes(t.Context()), "too many", "and still")
		s.noChange = nil
		ensure(1)

		s.away = serviceerror.NewUnavailable("restarting")
		require.Error(t, temporal.Ping(t.Context()))
		s.away, s.registered = nil, map[string]enumspb.IndexedValueType{}
		ensure(1)
		assert.Equal(t, all(), s.registered)
	})
}

// CountWorkflowExecutions implements workflowservice.WorkflowServiceServer.
func (f *frontend) CountWorkflowExecutions(
	context.Context, *workflowservice.CountWorkflowExecutionsRequest,
) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	f.queries.Add(1)
	tooMany := serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "namespace rate limit exceeded")
	return nil, serviceerror.ToStatus(tooMany).Err()
}

// The SDK's own client would send a query again and again that Temporal refuses for the number of queries.
func TestAQueryThatIsOneTooManyIsNotSentAgain(t *testing.T) {
	f := &frontend{}
	f.serve(t, insecure.NewCredentials())
	settings(t, map[string]string{"TEMPORAL_ADDRESS": f.address})
	temporal, err := connect.Lazy(connect.Options{Logger: zap.NewNop()})
	require.NoError(t, err)
	defer temporal.Close()
	var tooMany *serviceerror.ResourceExhausted
	require.ErrorAs(t, temporal.EnsureSearchAttributes(t.Context()), &tooMany)
	assert.EqualValues(t, 1, f.queries.Load())
}

// Nothing polls or signals before the attributes are in use: an upsert of an unknown name would fail for ever.
func TestAProcessWaitsForTheSearchAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{
			registered: map[string]enumspb.IndexedValueType{}, lag: 2,
			away: serviceerror.NewUnavailable("no"), back: time.Now().Add(time.Hour),
		}
		core, logs := observer.New(zap.WarnLevel)
		started := time.Now()
		require.NoError(t, s.temporal().AwaitSearchAttributes(t.Context(), zap.New(core)))
		assert.Equal(t, all(), s.registered)
		assert.InDelta(t, 3600, time.Since(started).Seconds(), 10, "soon after Temporal's return")
		var lines []string
		for _, entry := range logs.All() {
			lines = append(lines, entry.ContextMap()["error"].(string))
		}
		const unused = "invalid query: column name is not defined"
		assert.Equal(t, []string{"no", unused, "registered, not yet in use: " + unused}, lines, "an hour of the same is one line")
	})
}

func TestAProcessThatEndsWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{away: serviceerror.NewUnavailable("no")}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.temporal().AwaitSearchAttributes(ctx, zap.NewNop()) }()
		synctest.Wait()
		stop()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// The settings are those of Temporal's own tools; a process starts while Temporal is away.
func TestSettingsComeFromTheEnvironment(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
	t.Setenv("TEMPORAL_NAMESPACE", "")
	temporal, err := connect.Lazy(connect.Options{Logger: zap.NewNop()})
	require.NoError(t, err)
	assert.Equal(t, "default", temporal.Namespace)
	temporal.Close()

	t.Setenv("TEMPORAL_NAMESPACE", "tenants")
	temporal, err = connect.Lazy(connect.Options{Logger: zap.NewNop()})
	require.NoError(t, err)
	assert.Equal(t, "tenants", temporal.Namespace)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.Error(t, temporal.Ping(ctx), "nobody is there")
	temporal.Close()

	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(home, "missing", "temporal.toml"))
	t.Setenv("TEMPORAL_PROFILE", "missing")
	_, err = connect.Lazy(connect.Options{Logger: zap.NewNop()})
	assert.ErrorContains(t, err, "TEMPORAL_* environment variables")
}
