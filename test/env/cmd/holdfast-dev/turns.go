package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	temporalclient "go.temporal.io/sdk/client"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	polling "k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	otherNamespace = "team-bob"
	otherTenant    = "bob"
	otherBackup    = "one"
	crowdSize      = 5
)

// turnsPolicy hands Velero one unfinished Backup at a time.
const turnsPolicy = `apiVersion: v1
kind: ConfigMap
metadata: {name: holdfast-policy, namespace: %[1]s}
data:
  nonAdmin: |
    requireApprovalForBSL: true
  holdfast: |
    queue: {maxActive: %[2]d}
`

// tellTurns: one tenant's backups do not delay another's.
func tellTurns(ctx context.Context, s *story, stack *env.Env) error {
	s.chapter("The administrator has Holdfast hand Velero one backup at a time")
	if err := setTurns(ctx, stack, 1); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, fmt.Errorf("the backups did not have their turns within %s", demoLimit))
	defer cancel()
	if err := awaitQueue(ctx, stack); err != nil {
		return err
	}
	s.chapter("%s makes %d backups, and then %s, in %s, one", demoTenant, crowdSize, otherTenant, otherNamespace)
	if err := stack.CreateTenant(ctx, otherNamespace, otherTenant); err != nil {
		return err
	}
	begin := time.Now()
	for n := range crowdSize {
		name := fmt.Sprintf("crowd-%d", n)
		manifest, err := writeManifest(stack, name+".yaml", nonAdminBackup, demoNamespace, name)
		if err != nil {
			return err
		}
		if err := kubectl(ctx, stack, "apply", "-f", manifest); err != nil {
			return err
		}
	}
	manifest, err := writeManifest(stack, "one.yaml", nonAdminBackup, otherNamespace, otherBackup)
	if err != nil {
		return err
	}
	if _, err := runAs(ctx, stack, tools.Kubectl, otherTenant, "apply", "-f", manifest); err != nil {
		return err
	}
	s.chapter("Who has a turn, and who waits")
	if _, err := throughTemporal(ctx, stack, "queue", "--cluster-id", stack.ClusterID()); err != nil {
		return err
	}
	order, err := awaitTurns(ctx, stack)
	if err != nil {
		return err
	}
	fmt.Println("   the order in which Velero had them:", strings.Join(order, ", "))
	if order[len(order)-1] == otherNamespace+"/"+otherBackup {
		return fmt.Errorf("%s waited for all of %s's backups", otherTenant, demoTenant)
	}
	s.took("two tenants' backups, one at a time", time.Since(begin))
	return setTurns(ctx, stack, 0)
}

// awaitQueue waits until the queue has the policy's limit.
func awaitQueue(ctx context.Context, stack *env.Env) error {
	temporal, err := temporalclient.DialContext(ctx, temporalclient.Options{
		HostPort: stack.TemporalAddress(), Logger: env.QuietLogger(),
	})
	if err != nil {
		return fmt.Errorf("connect to Temporal: %w", err)
	}
	defer temporal.Close()
	err = polling.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		answer, err := temporal.QueryWorkflow(ctx, contract.VeleroQueueID(stack.ClusterID()), "", contract.QueryState)
		var state contract.VeleroQueueState
		return err == nil && answer.Get(&state) == nil && state.Rules.Limits[contract.PoolBackups] > 0, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the queue: %w", cmp.Or(context.Cause(ctx), err))
	}
	return nil
}

func setTurns(ctx context.Context, stack *env.Env, maxActive int) error {
	manifest, err := writeManifest(stack, "turns.yaml", turnsPolicy, env.OADPNamespace, maxActive)
	if err != nil {
		return err
	}
	_, err = asAdmin(ctx, stack, tools.Kubectl, "apply", "-f", manifest)
	return err
}

// awaitTurns waits until Velero has completed all, and returns the order in which they were handed to it.
func awaitTurns(ctx context.Context, stack *env.Env) ([]string, error) {
	var made []unstructured.Unstructured
	err := polling.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(velerov1.SchemeGroupVersion.WithKind("BackupList"))
		if err := stack.Client().List(ctx, list, client.InNamespace(env.OADPNamespace)); err != nil {
			return false, err
		}
		made = slices.DeleteFunc(list.Items, func(b unstructured.Unstructured) bool {
			name := originOf(b)
			return !strings.HasPrefix(name, demoNamespace+"/crowd-") && name != otherNamespace+"/"+otherBackup
		})
		ended := !slices.ContainsFunc(made, func(b unstructured.Unstructured) bool { return timeOf(b, "completionTimestamp") == "" })
		return len(made) == crowdSize+1 && ended, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for the backups: %w", cmp.Or(context.Cause(ctx), err))
	}
	slices.SortFunc(made, func(a, b unstructured.Unstructured) int {
		return cmp.Compare(timeOf(a, "startTimestamp"), timeOf(b, "startTimestamp"))
	})
	var order []string
	for _, backup := range made {
		order = append(order, originOf(backup))
	}
	return order, nil
}

// timeOf returns a time of a Velero Backup's status; "" if it is not set.
func timeOf(made unstructured.Unstructured, field string) string {
	at, _, _ := unstructured.NestedString(made.Object, "status", field)
	return at
}

func originOf(made unstructured.Unstructured) string {
	origin := made.GetAnnotations()
	return origin[oadpv1alpha1.NabOriginNamespaceAnnotation] + "/" + origin[oadpv1alpha1.NabOriginNameAnnotation]
}
