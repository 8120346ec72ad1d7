package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/fdbsim"
)

const (
	demoNamespace  = "team-alice"
	demoTenant     = "alice"
	demoBackup     = "demo"
	demoLocation   = "own"
	demoOwnBackup  = "into-own"
	demoLastBackup = "before"
	demoRestore    = "back"
	// demoLimit bounds each wait for Holdfast and Velero; on an idle machine they take a few seconds.
	demoLimit = 2 * time.Minute
)

// demo shows one backup from beginning to end, one into the tenant's own bucket, a restore, the turns of two tenants,
// the backup of a FoundationDB cluster, and a drill, and checks every claim it makes.
func demo(ctx context.Context) error {
	s := newStory()
	s.chapter("Build what is needed")
	begin := time.Now()
	bin, err := build(ctx)
	if err != nil {
		return err
	}
	s.took("build (next to nothing once it is cached)", time.Since(begin))
	fmt.Println("   everything is built")

	s.chapter("Start the stack")
	dir, err := newDir("demo-")
	if err != nil {
		return err
	}
	return cleanUp(ctx, dir, demoIn(ctx, s, dir, bin))
}

// demoIn runs the demo on a stack of its own in dir.
func demoIn(ctx context.Context, s *story, dir string, bin map[string]string) error {
	begin := time.Now()
	options, sim, err := withFoundationDB(env.Options{Dir: dir, Bin: bin, Holdfast: true, Drills: true, Progress: os.Stdout})
	if err != nil {
		return err
	}
	stack, err := env.Start(ctx, options)
	if err != nil {
		return err
	}
	defer stack.Stop()
	s.took("start of the stack", time.Since(begin))
	fmt.Println("   Temporal's Web UI:", stack.TemporalUI())

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(stack.Wait(ctx)) }()
	if err := tell(ctx, s, stack, sim); err != nil {
		return explain(ctx, stack, err)
	}
	s.summary()
	fmt.Println("\nThe demo succeeded.")
	return nil
}

// tell is the demo on a running stack.
func tell(ctx context.Context, s *story, stack *env.Env, sim *fdbsim.Sim) error {
	s.chapter("A tenant namespace with a few objects: %s, where %s has the role edit and nothing else", demoNamespace, demoTenant)
	if err := stack.CreateTenant(ctx, demoNamespace, demoTenant); err != nil {
		return err
	}
	objects, err := writeManifest(stack, "objects.yaml", tenantObjects, demoNamespace)
	if err != nil {
		return err
	}
	if err := kubectl(ctx, stack, "apply", "-f", objects); err != nil {
		return err
	}
	config, err := stack.RESTConfig(demoTenant)
	if err != nil {
		return err
	}
	tenant, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		return fmt.Errorf("connect as %s: %w", demoTenant, err)
	}
	if err := tellBackup(ctx, s, stack, tenant); err != nil {
		return err
	}
	if err := tellLocation(ctx, s, stack, tenant); err != nil {
		return err
	}
	if err := tellRestore(ctx, s, stack, tenant); err != nil {
		return err
	}
	if err := tellTurns(ctx, s, stack); err != nil {
		return err
	}
	if err := tellFoundationDB(ctx, s, stack, tenant, sim); err != nil {
		return err
	}
	return tellDrill(ctx, s, stack, tenant)
}

// tellBackup: a backup to where the administrator has it go, and its deletion.
func tellBackup(ctx context.Context, s *story, stack *env.Env, tenant client.WithWatch) error {
	s.chapter("%s asks for a backup", demoTenant)
	manifest, err := writeManifest(stack, "backup.yaml", nonAdminBackup, demoNamespace, demoBackup)
	if err != nil {
		return err
	}
	f := newFollower(tenant, kindNAB, demoBackup)
	veleroName, err := takeBackup(ctx, s, stack, f, manifest)
	if err != nil {
		return err
	}
	if err := checkTaken(ctx, s, stack, veleroName); err != nil {
		return err
	}
	if err := deleteBackup(ctx, s, stack, f); err != nil {
		return err
	}
	return checkGone(ctx, s, stack, veleroName)
}

// explain adds to the reason of a failure what the components concerned said last. An interruption needs no explanation.
func explain(ctx context.Context, stack *env.Env, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, context.Canceled) {
			return err
		}
		err = cause
	}
	fmt.Fprintln(os.Stderr)
	for _, name := range []string{env.Worker, env.FDBWorker, env.DrillWorker, env.Watcher, env.Velero} {
		if p := stack.Component(name); p != nil {
			fmt.Fprintf(os.Stderr, "--- end of %s\n%s\n", p.LogPath(), p.LogTail(20))
		}
	}
	return fmt.Errorf("%w\nall logs: %s", err, stack.LogDir())
}
