package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

const (
	kindDrill       = "RestoreDrill"
	demoDrill       = "first"
	demoDrillBackup = "proven"
)

// drillPolicy allows drills, and has digests recorded of every backup from then on.
const drillPolicy = `apiVersion: v1
kind: ConfigMap
metadata: {name: holdfast-policy, namespace: %[1]s}
data:
  nonAdmin: |
    requireApprovalForBSL: true
  holdfast: |
    drills: {enabled: true}
`

// applicationBackup is nonAdminBackup of the application alone: the agents of the FoundationDB backup need more memory than a
// drill has by default.
const applicationBackup = nonAdminBackup + `    labelSelector: {matchLabels: {app: web}}
`

// restoreDrill restores a backup into a namespace that nobody uses, and checks what comes back.
const restoreDrill = `apiVersion: holdfast.dev/v1alpha1
kind: RestoreDrill
metadata: {name: %[2]s, namespace: %[1]s}
spec: {backupName: %[3]s, timeout: 5m}
`

// tellDrill: a backup is restored into a namespace of its own, which proves it.
func tellDrill(ctx context.Context, s *story, stack *env.Env, tenant client.WithWatch) error {
	s.chapter("The administrator allows drills")
	if err := allowDrills(ctx, stack); err != nil {
		return err
	}
	s.chapter("%s takes a last backup, and wants to know whether it can be restored", demoTenant)
	manifest, err := writeManifest(stack, "proven.yaml", applicationBackup, demoNamespace, demoDrillBackup)
	if err != nil {
		return err
	}
	if _, err := takeBackup(ctx, s, stack, newFollower(tenant, kindNAB, demoDrillBackup), manifest); err != nil {
		return err
	}
	if manifest, err = writeManifest(stack, "drill.yaml", restoreDrill, demoNamespace, demoDrill, demoDrillBackup); err != nil {
		return err
	}
	s.chapter("A drill: the backup is restored into a namespace that nobody uses")
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, fmt.Errorf("the drill was not over within %s", demoLimit))
	defer cancel()
	f := &follower{
		client: tenant, object: newObject("holdfast.dev/v1alpha1", kindDrill, demoNamespace, demoDrill), shown: map[string]string{},
	}
	apply := func() error {
		err := kubectl(ctx, stack, "apply", "-f", manifest)
		s.chapter("What happens, as %s sees it (seconds since the request)", demoTenant)
		return err
	}
	err = f.until(ctx, apply, func(now state) (bool, error) {
		done, err := judgeDrill(now)
		if done && err == nil {
			s.took("drill: requested -> everything of it deleted", now.elapsed)
			s.measured("drill: recovery time that it has measured", recoveryTime(now.object))
		}
		return done, err
	})
	if err != nil {
		return err
	}
	_, err = runAs(ctx, stack, tools.Holdfast, demoTenant, "describe", "drill", demoNamespace+"/"+demoDrill)
	return err
}

// allowDrills has the policy allow drills, and require an administrator's approval of tenants' storage.
func allowDrills(ctx context.Context, stack *env.Env) error {
	policy, err := writeManifest(stack, "drills.yaml", drillPolicy, env.OADPNamespace)
	if err != nil {
		return err
	}
	_, err = asAdmin(ctx, stack, tools.Kubectl, "apply", "-f", policy)
	return err
}

// judgeDrill: done means that the drill is over and the backup is good.
func judgeDrill(now state) (bool, error) {
	if now.deleted {
		return false, errors.New("the RestoreDrill was deleted, which nobody asked for")
	}
	if text(now.object, "status", "phase") != "Ended" {
		return false, nil
	}
	if status, message := conditionStatus(now.object, "Verified"); status != "True" {
		return false, fmt.Errorf("the backup is not verified (%s): %s", status, message)
	}
	return true, nil
}

// recoveryTime is how long Velero took to restore the backup, and then the workloads to become ready.
func recoveryTime(drill *unstructured.Unstructured) (total time.Duration) {
	for _, field := range []string{"restoreSeconds", "readySeconds"} {
		seconds, _, _ := unstructured.NestedInt64(drill.Object, "status", "measured", field)
		total += time.Duration(seconds) * time.Second
	}
	return total
}
