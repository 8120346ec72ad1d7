package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/test/env"
)

const kindNAR = "NonAdminRestore"

// tellRestore: the tenant deletes what she needs, and gets it back as it was.
func tellRestore(ctx context.Context, s *story, stack *env.Env, tenant client.WithWatch) error {
	s.chapter("%s takes another backup", demoTenant)
	manifest, err := writeManifest(stack, "before.yaml", nonAdminBackup, demoNamespace, demoLastBackup)
	if err != nil {
		return err
	}
	if _, err := takeBackup(ctx, s, stack, newFollower(tenant, kindNAB, demoLastBackup), manifest); err != nil {
		return err
	}
	before, err := readTenantObjects(ctx, tenant)
	if err != nil {
		return err
	}
	if err := lose(ctx, s, stack, tenant); err != nil {
		return err
	}
	if err := bringBack(ctx, s, stack, newFollower(tenant, kindNAR, demoRestore)); err != nil {
		return err
	}
	s.chapter("What was lost is compared with what is back")
	after, err := readTenantObjects(ctx, tenant)
	if err != nil {
		return err
	}
	return compare(before, after)
}

// lose deletes the tenant's objects as the tenant.
func lose(ctx context.Context, s *story, stack *env.Env, tenant client.Client) error {
	s.chapter("A mistake: %s deletes them all", demoTenant)
	args := []string{"delete", "-n", demoNamespace}
	for _, object := range lostObjects() {
		args = append(args, strings.ToLower(object.GetKind())+"/"+object.GetName())
	}
	if err := kubectl(ctx, stack, args...); err != nil {
		return err
	}
	for _, object := range lostObjects() {
		err := tenant.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			return fmt.Errorf("%s %s is still there", object.GetKind(), object.GetName())
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// bringBack asks for the restore as the tenant, and follows it to the end of its finalization.
func bringBack(ctx context.Context, s *story, stack *env.Env, f *follower) error {
	manifest, err := writeManifest(stack, "restore.yaml", nonAdminRestore, demoNamespace, demoRestore, demoLastBackup)
	if err != nil {
		return err
	}
	s.chapter("%s asks for everything back", demoTenant)
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, fmt.Errorf("the restore was not finished within %s", demoLimit))
	defer cancel()
	apply := func() error {
		err := kubectl(ctx, stack, "apply", "-f", manifest)
		s.chapter("What happens, as %s sees it (seconds since the request)", demoTenant)
		return err
	}
	err = f.until(ctx, apply, func(now state) (bool, error) {
		done, err := judgeRestore(now)
		if done {
			s.took("restore: requested -> finalized", now.elapsed)
		}
		return done, err
	})
	if err != nil {
		return err
	}
	return kubectl(ctx, stack, "get", "nar", "-n", demoNamespace)
}

// judgeRestore: done means that Velero has restored everything and nothing was left to complain of.
func judgeRestore(now state) (bool, error) {
	if now.deleted {
		return false, errors.New("the NonAdminRestore was deleted, which nobody asked for")
	}
	if status, message := conditionStatus(now.object, "Accepted"); status == "False" {
		return false, fmt.Errorf("the restore was refused: %s", message)
	}
	switch phase := text(now.object, "status", "veleroRestore", "status", "phase"); phase {
	case "Failed", "PartiallyFailed", "FailedValidation":
		return false, fmt.Errorf("velero ended the restore in phase %s", phase)
	}
	switch phase := text(now.object, "status", "finalization", "phase"); phase {
	case "PartiallyFailed":
		_, message := conditionStatus(now.object, "Finalized")
		return false, fmt.Errorf("the finalization of the restore ended in phase %s: %s", phase, message)
	case "Completed":
		return true, nil
	}
	return false, nil
}

// lostObjects names what tenantObjects holds.
func lostObjects() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		newObject("v1", "ConfigMap", demoNamespace, "settings"),
		newObject("v1", "Secret", demoNamespace, "login"),
		newObject("v1", "Service", demoNamespace, "web"),
		newObject("apps/v1", "Deployment", demoNamespace, "web"),
	}
}

func readTenantObjects(ctx context.Context, tenant client.Client) ([]*unstructured.Unstructured, error) {
	objects := lostObjects()
	for _, object := range objects {
		if err := tenant.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return nil, fmt.Errorf("read %s %s as the tenant: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return objects, nil
}

// compare fails at the first object that did not come back as it was. Each must be a new object, not one that was never lost.
func compare(before, after []*unstructured.Unstructured) error {
	for i, lost := range before {
		back := after[i]
		what := lost.GetKind() + " " + lost.GetName()
		if lost.GetUID() == back.GetUID() {
			return fmt.Errorf("%s was never lost", what)
		}
		had, has := content(lost), content(back)
		if !reflect.DeepEqual(had, has) {
			return fmt.Errorf("%s is not as it was:\n  before %v\n  after  %v", what, had, has)
		}
		fmt.Printf("   %-22s as it was: %s\n", what, strings.Join(slices.Sorted(maps.Keys(had)), ", "))
	}
	return nil
}

// content is what of an object a restore must bring back: all but its status, and what the API server and Velero give to each
// new object.
func content(object *unstructured.Unstructured) map[string]any {
	kept := object.DeepCopy().Object
	labels := object.GetLabels()
	maps.DeleteFunc(labels, func(label, _ string) bool { return strings.HasPrefix(label, "velero.io/") })
	for _, given := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(kept, given)
	}
	if len(labels) > 0 {
		kept["labels"] = labels
	}
	unstructured.RemoveNestedField(kept, "spec", "clusterIP")
	unstructured.RemoveNestedField(kept, "spec", "clusterIPs")
	return kept
}
