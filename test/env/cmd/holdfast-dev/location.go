package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

const (
	kindNAB         = "NonAdminBackup"
	kindLocation    = "NonAdminBackupStorageLocation"
	ownCredentials  = "own-credentials" //nolint:gosec // the name of a Secret, not one
	approvalReason  = "ticket 4711"
	approvalPending = "BslSpecApprovalPending"
)

// tellLocation: the tenant's own bucket, which an administrator must approve, a backup into it, and its end.
func tellLocation(ctx context.Context, s *story, stack *env.Env, tenant client.WithWatch) error {
	s.chapter("The administrator's policy: tenants' own storage needs approval")
	if err := requireApproval(ctx, stack); err != nil {
		return err
	}
	own, err := layOwnStorage(ctx, stack)
	if err != nil {
		return err
	}
	account := own.account
	fmt.Printf("   %s has a bucket of her own, %q, and keys to it, which Velero does not have\n", demoTenant, account.Bucket)
	f := newFollower(tenant, kindLocation, demoLocation)
	name, err := askForLocation(ctx, s, stack, f, own)
	if err != nil {
		return err
	}
	version, err := lookAtApprovals(ctx, s, stack, name, account)
	if err != nil {
		return err
	}
	if err := approveLocation(ctx, s, stack, f, version); err != nil {
		return err
	}
	s.chapter("%s backs up into the own location", demoTenant)
	backup, err := takeBackup(ctx, s, stack, newFollower(tenant, kindNAB, demoOwnBackup), own.backup)
	if err != nil {
		return err
	}
	if err := checkTakenIntoOwn(ctx, s, stack, backup, account); err != nil {
		return err
	}
	if err := deleteLocation(ctx, s, stack, f); err != nil {
		return err
	}
	return checkLocationGone(ctx, s, stack, name, backup, account)
}

// requireApproval has the policy ask for an administrator's approval.
func requireApproval(ctx context.Context, stack *env.Env) error {
	manifest, err := writeManifest(stack, "policy.yaml", approvalPolicy, env.OADPNamespace)
	if err != nil {
		return err
	}
	_, err = asAdmin(ctx, stack, tools.Kubectl, "apply", "-f", manifest)
	return err
}

// ownStorage is a bucket of the tenant's, and the files with which it uses that.
type ownStorage struct {
	account  env.Account
	keys     string // for a Secret
	location string // a manifest
	backup   string // another, of a backup into the location
}

// layOwnStorage gives the tenant an account at the object store, and writes the files.
func layOwnStorage(ctx context.Context, stack *env.Env) (ownStorage, error) {
	account, err := stack.CreateAccount(ctx, demoTenant+"-bucket")
	if err != nil {
		return ownStorage{}, err
	}
	own := ownStorage{account: account, keys: filepath.Join(stack.Dir(), demoTenant+"-keys")}
	if err := os.WriteFile(own.keys, account.CredentialsFile(), 0o600); err != nil {
		return ownStorage{}, fmt.Errorf("write the tenant's keys: %w", err)
	}
	storage := stack.Storage()
	own.location, err = writeManifest(stack, "location.yaml", ownLocation,
		demoNamespace, demoLocation, account.Bucket, ownCredentials, storage.Region, storage.Endpoint)
	if err != nil {
		return ownStorage{}, err
	}
	own.backup, err = writeManifest(stack, "into-own.yaml", backupIntoLocation, demoNamespace, demoOwnBackup, demoLocation)
	return own, err
}

// askForLocation creates Secret and location as the tenant. It returns the name of all that will be made for it, once it waits
// for approval.
func askForLocation(ctx context.Context, s *story, stack *env.Env, f *follower, own ownStorage) (string, error) {
	s.chapter("%s brings her own storage: a Secret and a %s", demoTenant, kindLocation)
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, fmt.Errorf("the location was not seen within %s", demoLimit))
	defer cancel()
	apply := func() error {
		err := kubectl(ctx, stack, "create", "secret", "generic", ownCredentials, "-n", demoNamespace, "--from-file=cloud="+own.keys)
		if err != nil {
			return err
		}
		return kubectl(ctx, stack, "apply", "-f", own.location)
	}
	err := f.until(ctx, apply, func(now state) (bool, error) {
		if status, message := conditionStatus(now.object, "Accepted"); status == "False" {
			return false, fmt.Errorf("the location was refused: %s", message)
		}
		pending := conditionOf(now.object, "ClusterAdminApproved")["reason"] == approvalPending
		if pending {
			s.took("location: requested -> pending", now.elapsed)
		}
		return pending, nil
	})
	if err != nil {
		return "", err
	}
	if phase := text(f.object, "status", "phase"); phase != "BackingOff" {
		return "", fmt.Errorf("the location waits for approval, but is in phase %q", phase)
	}
	return text(f.object, "status", "veleroBackupStorageLocation", "name"), nil
}

// lookAtApprovals checks that nothing was made of the location yet, and that the tenant cannot decide. It returns the version of
// the approval request as the administrator is shown it.
func lookAtApprovals(ctx context.Context, s *story, stack *env.Env, name string, account env.Account) (string, error) {
	s.chapter("It waits for an administrator, and %s cannot decide", demoTenant)
	if err := kubectl(ctx, stack, "get", "nabsl", "-n", demoNamespace); err != nil {
		return "", err
	}
	answer, err := runAs(ctx, stack, tools.Kubectl, demoTenant, "get", "nabslapprovalrequest", "-n", env.OADPNamespace)
	if err == nil || !strings.Contains(answer, "Forbidden") {
		return "", fmt.Errorf("%s may look at approval requests: %s", demoTenant, answer)
	}
	for _, object := range madeOf(name) {
		if err := requireGone(ctx, stack, object); err != nil {
			return "", err
		}
	}
	fmt.Println("   Velero has no location, and nothing of the Secret was copied")
	shown, err := asAdmin(ctx, stack, tools.Holdfast, "list", "approvals")
	if err != nil {
		return "", err
	}
	const stateColumn, versionColumn, columns = 2, 5, 6
	for line := range strings.Lines(shown) {
		cells := strings.Fields(line)
		if len(cells) < columns || cells[0] != demoNamespace || cells[1] != demoLocation {
			continue
		}
		if cells[stateColumn] != "pending" || !strings.Contains(shown, "+ objectStorage.bucket: "+account.Bucket) {
			break
		}
		return cells[versionColumn], nil
	}
	return "", errors.New("the administrator is not shown what is pending")
}

// approveLocation decides as the administrator, and follows the location until Velero reaches the bucket.
func approveLocation(ctx context.Context, s *story, stack *env.Env, f *follower, version string) error {
	s.chapter("An administrator approves what was shown")
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, fmt.Errorf("the location was not Available within %s", demoLimit))
	defer cancel()
	approve := func() error {
		_, err := asAdmin(ctx, stack, tools.Holdfast, "approve", demoNamespace+"/"+demoLocation,
			"--reason", approvalReason, "--resource-version", version)
		s.chapter("What %s sees of it (seconds since the command)", demoTenant)
		return err
	}
	return f.until(ctx, approve, func(now state) (bool, error) {
		if status, _ := conditionStatus(now.object, "ClusterAdminApproved"); status != "True" {
			return false, nil
		}
		switch phase := text(now.object, "status", "veleroBackupStorageLocation", "status", "phase"); phase {
		case "":
			return false, nil
		case "Available":
		default:
			return false, fmt.Errorf("the location is %s: %s", phase,
				text(now.object, "status", "veleroBackupStorageLocation", "status", "message"))
		}
		s.took("location: approved -> Available", now.elapsed)
		for _, condition := range []string{"Accepted", "SecretSynced", "BackupStorageLocationSynced"} {
			if status, _ := conditionStatus(now.object, condition); status != "True" {
				return false, fmt.Errorf("the location is Available, but condition %s is %q", condition, status)
			}
		}
		return true, nil
	})
}
