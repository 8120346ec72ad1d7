package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"holdfast.dev/holdfast/workflows/contract"
)

const (
	// ClusterCheckInterval is how often a process should call ClusterCheck.Probe.
	ClusterCheckInterval = 15 * time.Second
	// ownedFor and takenFor are how long Probe asks Temporal no more after the ID belonged to no other cluster, and to one.
	ownedFor = contract.HeartbeatInterval - ClusterCheckInterval/2
	takenFor = ClusterCheckInterval * 2 / 3
	// releasedFor is how long an ID must have belonged to no cluster before a process that has waited for it starts. If it was not
	// a person who released it but Temporal that lost it, its owner takes it again with the next heartbeat.
	releasedFor = 3 * contract.HeartbeatInterval
)

// ClusterIDTakenError is the error of a process whose cluster ID belongs to another Kubernetes cluster.
type ClusterIDTakenError struct {
	TemporalNamespace, ClusterID string
	// UID is that of this cluster, OtherUID that of the other one, both of namespace kube-system.
	UID, OtherUID string
}

// Error implements error.
func (e *ClusterIDTakenError) Error() string {
	return fmt.Sprintf("cluster ID %q belongs to another Kubernetes cluster in this Temporal namespace: its namespace kube-system "+
		"has UID %s, here it is %s. Give each cluster its own --cluster-id. If this cluster replaces the other one, which is gone "+
		"for good: temporal workflow terminate --namespace %s --workflow-id %s",
		e.ClusterID, e.OtherUID, e.UID, e.TemporalNamespace, contract.HeartbeatID(e.ClusterID))
}

// ClusterCheck checks that a process's cluster ID belongs to no other Kubernetes cluster. Two with one ID would take each other's
// workflow tasks and activities, and find none of their objects.
type ClusterCheck struct {
	temporal  *Temporal
	clusterID string
	readUID   func(context.Context) (string, error)

	uid   atomic.Pointer[string] // nil until known
	taken chan error

	// one holds what follows: a check at a time.
	one *semaphore.Weighted
	// result is what Probe returns until resultEnds.
	result     error
	resultEnds time.Time
	// other has the ID, or had it last, as far as this process has seen and waits for it; empty if no other cluster has. freeSince
	// is since when nobody has it, as Temporal has answered ever since; zero while somebody has.
	other     string
	freeSince time.Time
	// started: Await has returned.
	started bool
}

// NewClusterCheck returns a check by the cluster's heartbeat. readUID is k8s.ClusterUID.
func NewClusterCheck(temporal *Temporal, clusterID string, readUID func(context.Context) (string, error)) *ClusterCheck {
	return &ClusterCheck{
		temporal: temporal, clusterID: clusterID, readUID: readUID, taken: make(chan error, 1), one: semaphore.NewWeighted(1),
	}
}

// UID is that of the Kubernetes cluster, and empty before the first check.
func (c *ClusterCheck) UID() string {
	if uid := c.uid.Load(); uid != nil {
		return *uid
	}
	return ""
}

// Probe returns a ClusterIDTakenError while the ID belongs to another cluster, another error for three minutes after that unless
// Await has returned, and one if it cannot find out. It asks Temporal once a minute, every ten seconds while the ID is not free,
// and each time after an error of Temporal's.
func (c *ClusterCheck) Probe(ctx context.Context) error {
	if err := c.one.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait for another check of the cluster ID: %w", err)
	}
	defer c.one.Release(1)
	return c.probe(ctx)
}

func (c *ClusterCheck) probe(ctx context.Context) error {
	if time.Now().Before(c.resultEnds) {
		return c.result
	}
	if c.uid.Load() == nil {
		uid, err := c.readUID(ctx)
		if err != nil {
			return err
		}
		c.uid.Store(&uid)
	}
	owner, err := c.owner(ctx)
	var busy *serviceerror.ResourceExhausted
	if errors.As(err, &busy) && c.started {
		return nil // nothing says that it is another one's
	}
	if err != nil {
		c.freeSince = time.Time{}
		return err
	}
	c.result, c.resultEnds = c.judge(owner), time.Now().Add(takenFor)
	if c.result == nil {
		c.resultEnds = time.Now().Add(ownedFor)
	}
	return c.result
}

// nobody and unknown are owners: there is no heartbeat, and there is one that does not say whose it is.
const (
	nobody  = ""
	unknown = "?"
)

// judge is the result of a check that has found an owner. An unknown one does not keep a process from starting, unless it was
// another cluster before.
func (c *ClusterCheck) judge(owner string) error {
	now := time.Now()
	if owner == unknown {
		owner = c.other
	}
	switch owner {
	case c.UID():
		c.other, c.freeSince = "", time.Time{}
		return nil
	case nobody:
		return c.judgeFree(now)
	}
	c.other, c.freeSince = owner, time.Time{}
	err := &ClusterIDTakenError{
		TemporalNamespace: c.temporal.Namespace, ClusterID: c.clusterID, UID: c.UID(), OtherUID: owner,
	}
	if c.started {
		select {
		case c.taken <- err:
		default: // one is enough
		}
	}
	return err
}

func (c *ClusterCheck) judgeFree(now time.Time) error {
	if c.other == "" {
		return nil
	}
	if c.freeSince.IsZero() {
		c.freeSince = now
	}
	starts := c.freeSince.Add(releasedFor)
	if !now.Before(starts) {
		return nil
	}
	return fmt.Errorf("cluster ID %q belongs to no Kubernetes cluster any more. Unless the one that had it takes it again, this "+
		"process starts at %s", c.clusterID, starts.UTC().Format(time.RFC3339))
}

// owner is the UID of the cluster to which the ID belongs, nobody or unknown: an earlier version has sent the heartbeat, or its
// key is not here. It goes around the SDK's client, which would ask again and again while Temporal is busy.
func (c *ClusterCheck) owner(ctx context.Context) (uid string, err error) {
	heartbeat := &commonpb.WorkflowExecution{WorkflowId: contract.HeartbeatID(c.clusterID)}
	request := &workflowservice.DescribeWorkflowExecutionRequest{Namespace: c.temporal.Namespace, Execution: heartbeat}
	described, err := c.temporal.WorkflowService().DescribeWorkflowExecution(ctx, request)
	var none *serviceerror.NotFound
	if errors.As(err, &none) {
		return nobody, nil
	}
	if err != nil {
		return "", fmt.Errorf("read the cluster's heartbeat: %w", err)
	}
	workflow := described.GetWorkflowExecutionInfo()
	switch workflow.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:
	default:
		return nobody, nil // an administrator has ended it
	}
	payload, there := workflow.GetMemo().GetFields()[contract.MemoHeartbeat]
	if !there {
		return nobody, nil // it waits for a worker: this one, perhaps
	}
	var last contract.Heartbeat
	if err := c.temporal.Converter.FromPayload(payload, &last); err != nil {
		return unknown, nil //nolint:nilerr // whoever has lost the keys must be able to start
	}
	return cmp.Or(last.Watcher.ClusterUID, unknown), nil
}

// Await returns once neither also nor Probe fails, and logs why it waits. It waits for the API server and Temporal, too.
func (c *ClusterCheck) Await(ctx context.Context, logger *zap.Logger, also func(context.Context) error) error {
	return await(ctx, logger, "waiting for the cluster ID", func(ctx context.Context) error {
		if err := also(ctx); err != nil {
			return err
		}
		if err := c.one.Acquire(ctx, 1); err != nil {
			return err
		}
		defer c.one.Release(1)
		if c.result == nil {
			c.resultEnds = time.Time{} // as of now
		}
		if err := c.probe(ctx); err != nil {
			return err
		}
		c.started, c.other = true, ""
		return nil
	})
}

// Taken receives an error when Probe finds, after Await, that the ID belongs to another cluster: the process must end.
func (c *ClusterCheck) Taken() <-chan error { return c.taken }
