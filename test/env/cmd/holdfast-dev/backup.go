package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/test/env"
)

// takeBackup applies a NonAdminBackup's manifest as the tenant and returns the name of Velero's Backup once it is completed.
func takeBackup(ctx context.Context, s *story, stack *env.Env, f *follower, manifest string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit,
		fmt.Errorf("the backup was not completed within %s", demoLimit))
	defer cancel()
	created := false
	apply := func() error {
		err := kubectl(ctx, stack, "apply", "-f", manifest)
		s.chapter("What happens, as %s sees it (seconds since the request)", demoTenant)
		return err
	}
	err := f.until(ctx, apply, func(now state) (bool, error) {
		if now.deleted {
			return false, errors.New("the NonAdminBackup was deleted, which nobody asked for")
		}
		if status, _ := conditionStatus(now.object, "Queued"); status == "True" && !created {
			created = true
			s.took(f.object.GetName()+": requested -> Velero Backup created", now.elapsed)
		}
		done, err := judgeBackup(now.object)
		if done {
			s.took(f.object.GetName()+": requested -> completed", now.elapsed)
		}
		return done, err
	})
	if err != nil {
		return "", err
	}
	return text(f.object, "status", "veleroBackup", "name"), nil
}

// judgeBackup: done means that Velero has completed the backup and Holdfast says so on the tenant's object.
func judgeBackup(object *unstructured.Unstructured) (bool, error) {
	if status, message := conditionStatus(object, "Accepted"); status == "False" {
		return false, fmt.Errorf("the backup was refused: %s", message)
	}
	switch phase := text(object, "status", "veleroBackup", "status", "phase"); phase {
	case "Failed", "PartiallyFailed", "FailedValidation":
		return false, fmt.Errorf("velero ended the backup in phase %s", phase)
	case "Completed":
	default:
		return false, nil
	}
	if phase := text(object, "status", "phase"); phase != "Created" {
		return false, fmt.Errorf("the backup is completed, but the NonAdminBackup is in phase %q", phase)
	}
	for _, condition := range []string{"Accepted", "Queued"} {
		if status, _ := conditionStatus(object, condition); status != "True" {
			return false, fmt.Errorf("the backup is completed, but condition %s is %q", condition, status)
		}
	}
	return true, nil
}

// checkTaken looks at Velero's object and into the bucket, whatever the tenant's object says.
func checkTaken(ctx context.Context, s *story, stack *env.Env, name string) error {
	s.chapter("The objects that arrived in the bucket %q", stack.Storage().Bucket)
	phase, err := veleroPhase(ctx, stack, name)
	if err != nil {
		return err
	}
	if phase != "Completed" {
		return fmt.Errorf("the NonAdminBackup says Completed, but Velero's Backup %s is %q", name, phase)
	}
	prefix := backupPrefix(stack, name)
	objects, err := stack.Objects(prefix)
	if err != nil {
		return err
	}
	showObjects(objects, prefix)
	return checkArchive(stack.Storage().Dir, prefix, name)
}

func showObjects(objects []env.Object, prefix string) {
	fmt.Printf("   below %s/\n", prefix)
	for _, object := range objects {
		fmt.Printf("   %8d bytes  %s\n", object.Size, strings.TrimPrefix(object.Key, prefix+"/"))
	}
}

// deleteBackup asks for the deletion as the tenant and returns when the NonAdminBackup is gone.
func deleteBackup(ctx context.Context, s *story, stack *env.Env, f *follower) error {
	s.chapter("%s deletes the backup with its data", demoTenant)
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit,
		fmt.Errorf("the backup was not deleted within %s", demoLimit))
	defer cancel()
	request := func() error {
		return kubectl(ctx, stack, "patch", "nonadminbackup", demoBackup, "-n", demoNamespace,
			"--type", "merge", "-p", `{"spec":{"deleteBackup":true}}`)
	}
	return f.until(ctx, request, func(now state) (bool, error) {
		if now.deleted {
			s.took(f.object.GetName()+": deletion requested -> backup and data gone", now.elapsed)
		}
		return now.deleted, nil
	})
}

// checkGone looks for what should not be there any more.
func checkGone(ctx context.Context, s *story, stack *env.Env, name string) error {
	s.chapter("What is left of it")
	phase, err := veleroPhase(ctx, stack, name)
	if err == nil {
		return fmt.Errorf("velero's Backup %s still exists, in phase %q", name, phase)
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	fmt.Println("   no Velero Backup", name)
	objects, err := stack.Objects(backupPrefix(stack, name))
	if err != nil {
		return err
	}
	if len(objects) > 0 {
		return fmt.Errorf("%d objects of the backup are still in the bucket, first %s", len(objects), objects[0].Key)
	}
	fmt.Println("   no object in the bucket below", backupPrefix(stack, name))
	return nil
}

func backupPrefix(stack *env.Env, name string) string {
	return stack.Storage().Prefix + "/backups/" + name
}

func veleroPhase(ctx context.Context, stack *env.Env, name string) (string, error) {
	backup := newObject("velero.io/v1", "Backup", env.OADPNamespace, name)
	if err := stack.Client().Get(ctx, client.ObjectKeyFromObject(backup), backup); err != nil {
		return "", fmt.Errorf("read Velero's Backup %s: %w", name, err)
	}
	return text(backup, "status", "phase"), nil
}
