package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

const devBackup = "my-backup"

// samples are the manifests that a user tries.
type samples struct {
	backup, database, drill string
	own                     ownStorage
}

// dev keeps a stack with one tenant running until ctx ends. Its files can be reached below .env/dev, whatever the run, so that
// paths in a user's shell stay right over restarts.
func dev(ctx context.Context) error {
	bin, err := build(ctx)
	if err != nil {
		return err
	}
	dir, err := newDir("dev-")
	if err != nil {
		return err
	}
	return cleanUp(ctx, dir, devIn(ctx, dir, bin))
}

// devIn runs the stack with its data in dir.
func devIn(ctx context.Context, dir string, bin map[string]string) error {
	options, sim, err := withFoundationDB(env.Options{Dir: dir, Bin: bin, Holdfast: true, Drills: true, Progress: os.Stdout})
	if err != nil {
		return err
	}
	stack, err := env.Start(ctx, options)
	if err != nil {
		return err
	}
	defer stack.Stop()
	if err := stack.CreateTenant(ctx, demoNamespace, demoTenant); err != nil {
		return err
	}
	if err := layFDBCluster(ctx, stack, sim); err != nil {
		return err
	}
	database, err := fdbSample(stack)
	if err != nil {
		return err
	}
	objects, err := writeManifest(stack, "objects.yaml", tenantObjects, demoNamespace)
	if err != nil {
		return err
	}
	if err := kubectl(ctx, stack, "apply", "-f", objects); err != nil {
		return err
	}
	manifest, err := writeManifest(stack, "backup.yaml", nonAdminBackup, demoNamespace, devBackup)
	if err != nil {
		return err
	}
	if err := allowDrills(ctx, stack); err != nil {
		return err
	}
	drill, err := writeManifest(stack, "drill.yaml", restoreDrill, demoNamespace, demoDrill, devBackup)
	if err != nil {
		return err
	}
	own, err := layOwnStorage(ctx, stack)
	if err != nil {
		return err
	}
	link := filepath.Join(filepath.Dir(dir), "dev")
	if err := relink(dir, link); err != nil {
		return err
	}
	defer unlink(dir, link)
	introduce(stack, samples{backup: manifest, database: database, drill: drill, own: own},
		func(path string) string { return strings.Replace(path, dir, link, 1) })
	if err := stack.Wait(ctx); err != nil {
		return fmt.Errorf("%w\nall logs: %s", err, stack.LogDir())
	}
	fmt.Println("\nstopping")
	return nil
}

const introduction = `
Holdfast is running.

  kubeconfig of the admin          %s
  kubeconfig of tenant %-11s %s   (namespace %s)
  Temporal's Web UI                %s
  Temporal's address               %s
  logs                             %s

To try, as the tenant:

  # take a backup of the namespace
  %s

  # see how it goes
  %s

  # drill it: have it restored into a namespace that nobody uses, and checked
  %s

  # see how the drill goes, until its phase is Ended
  %s

  # read what came of it
  %s

  # delete the backup with its data
  %s

A bucket of her own, %q, which an administrator has to approve:

  # as the tenant: bring the keys, and ask for the location
  %s
  %s

  # as the administrator: read the pending requests, and decide
  %s
  %s

  # as the tenant: take a backup into it
  %s

A FoundationDB cluster, backed up continuously (with a stand-in of its tools, unless FDB_BIN_DIR names the real ones):

  %s
  %s

Ctrl-C stops everything.
`

func introduce(stack *env.Env, files samples, short func(string) string) {
	admin, tenant := short(stack.Kubeconfig(env.Admin)), short(stack.Kubeconfig(demoTenant))
	asTenant := []string{stack.Binary(tools.Kubectl), "--kubeconfig", tenant, "-n", demoNamespace}
	command := func(args ...string) string { return commandLine(append(append([]string{}, asTenant...), args...)) }
	asAdmin := func(args ...string) string {
		return commandLine(append(append([]string{stack.Binary(tools.Holdfast)}, args...), "--kubeconfig", admin))
	}
	fmt.Printf(introduction, admin, demoTenant, tenant, demoNamespace, stack.TemporalUI(), stack.TemporalAddress(),
		short(stack.LogDir()),
		command("apply", "-f", short(files.backup)),
		command("get", "nonadminbackup", devBackup, "-o", "wide"),
		command("apply", "-f", short(files.drill)),
		command("get", "drill", demoDrill, "--watch"),
		commandLine([]string{
			"TEMPORAL_ADDRESS=" + stack.TemporalAddress(), stack.Binary(tools.Holdfast), "describe", "drill",
			demoNamespace + "/" + demoDrill, "--kubeconfig", tenant,
		}),
		command("patch", "nonadminbackup", devBackup, "--type", "merge", "-p", `{"spec":{"deleteBackup":true}}`),
		files.own.account.Bucket,
		command("create", "secret", "generic", ownCredentials, "--from-file=cloud="+short(files.own.keys)),
		command("apply", "-f", short(files.own.location)),
		asAdmin("list", "approvals"),
		asAdmin("approve", demoNamespace+"/"+demoLocation, "--reason", "trying it out"),
		command("apply", "-f", short(files.own.backup)),
		command("apply", "-f", short(files.database)), command("get", "fdbb", "--watch"))
}

// relink lets link point to dir in one step, also when there is one from before.
func relink(dir, link string) error {
	fresh := link + ".new"
	_ = os.Remove(fresh) // from a run that was killed here
	if err := os.Symlink(filepath.Base(dir), fresh); err != nil {
		return fmt.Errorf("link to the stack's folder: %w", err)
	}
	if err := os.Rename(fresh, link); err != nil {
		return fmt.Errorf("link to the stack's folder: %w", err)
	}
	return nil
}

// unlink removes link unless it points to another stack by now.
func unlink(dir, link string) {
	if target, err := os.Readlink(link); err == nil && target == filepath.Base(dir) {
		_ = os.Remove(link) // a left-over link harms nobody
	}
}
