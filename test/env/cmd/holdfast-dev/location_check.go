package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/test/env"
)

const kindApproval = "NonAdminBackupStorageLocationApprovalRequest"

// madeOf is what Velero needs for a location: all of it has the same name.
func madeOf(name string) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		newObject("velero.io/v1", "BackupStorageLocation", env.OADPNamespace, name),
		newObject("v1", "Secret", env.OADPNamespace, name),
	}
}

// wait asks again and again until done, at most for demoLimit.
func wait(ctx context.Context, failure string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, fmt.Errorf("%s within %s", failure, demoLimit))
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// requireGone fails if an object exists.
func requireGone(ctx context.Context, stack *env.Env, object *unstructured.Unstructured) error {
	err := stack.Client().Get(ctx, client.ObjectKeyFromObject(object), object)
	if err == nil {
		return fmt.Errorf("%s %s/%s exists", object.GetKind(), object.GetNamespace(), object.GetName())
	}
	return client.IgnoreNotFound(err)
}

// ownPrefix is where a backup lies in the tenant's bucket: in the folder of its namespace.
func ownPrefix(backup string) string { return demoNamespace + "/backups/" + backup }

func checkTakenIntoOwn(ctx context.Context, s *story, stack *env.Env, backup string, account env.Account) error {
	s.chapter("The objects that arrived in %s's bucket %q", demoTenant, account.Bucket)
	phase, err := veleroPhase(ctx, stack, backup)
	if err != nil {
		return err
	}
	if phase != "Completed" {
		return fmt.Errorf("the NonAdminBackup says Completed, but Velero's Backup %s is %q", backup, phase)
	}
	objects, err := stack.BucketObjects(account, ownPrefix(backup))
	if err != nil {
		return err
	}
	showObjects(objects, ownPrefix(backup))
	if err := checkArchive(account.Dir, ownPrefix(backup), backup); err != nil {
		return err
	}
	elsewhere, err := stack.Objects(backupPrefix(stack, backup))
	if err != nil {
		return err
	}
	if len(elsewhere) > 0 {
		return fmt.Errorf("the backup is in the administrator's bucket too: %s", elsewhere[0].Key)
	}
	fmt.Println("   nothing of it is in the administrator's bucket")
	return nil
}

// deleteLocation returns when the location is gone.
func deleteLocation(ctx context.Context, s *story, stack *env.Env, f *follower) error {
	s.chapter("%s deletes the location", demoTenant)
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, fmt.Errorf("the location was not deleted within %s", demoLimit))
	defer cancel()
	request := func() error {
		return kubectl(ctx, stack, "delete", "nabsl", demoLocation, "-n", demoNamespace, "--wait=false")
	}
	return f.until(ctx, request, func(now state) (bool, error) {
		if now.deleted {
			s.took("location: deletion requested -> gone", now.elapsed)
		}
		return now.deleted, nil
	})
}

// checkLocationGone: nothing is left in the cluster, and everything in the tenant's bucket.
func checkLocationGone(ctx context.Context, s *story, stack *env.Env, name, backup string, account env.Account) error {
	s.chapter("What is left of it")
	nab := newObject("oadp.openshift.io/v1alpha1", kindNAB, demoNamespace, demoOwnBackup)
	err := wait(ctx, "the backup in the location did not go", func() (bool, error) {
		err := stack.Client().Get(ctx, client.ObjectKeyFromObject(nab), nab)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}
	gone := append(madeOf(name),
		newObject("oadp.openshift.io/v1alpha1", kindApproval, env.OADPNamespace, name),
		newObject("velero.io/v1", "Backup", env.OADPNamespace, backup))
	for _, object := range gone {
		if err := requireGone(ctx, stack, object); err != nil {
			return err
		}
		fmt.Printf("   no %s %s\n", object.GetKind(), object.GetName())
	}
	fmt.Printf("   no NonAdminBackup %s, which lay in it\n", demoOwnBackup)
	objects, err := stack.BucketObjects(account, ownPrefix(backup))
	if err != nil {
		return err
	}
	if len(objects) == 0 {
		return errors.New("the backup's data are gone from the tenant's bucket")
	}
	fmt.Printf("   in %s's bucket still %d objects below %s: her data stay hers\n", demoTenant, len(objects), ownPrefix(backup))
	return nil
}
