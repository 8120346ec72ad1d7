// Command holdfast-dev runs Holdfast with everything it needs on this machine, without a container engine.
//
//	holdfast-dev demo   one backup from a tenant's kubectl to the bucket and away again, then one into the tenant's own bucket,
//	                    which an administrator approves; all checked; then it ends
//	holdfast-dev dev    the same stack stays up until Ctrl-C
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"holdfast.dev/holdfast/test/tools"
)

// exitInterrupted is what shells report for a program ended by Ctrl-C.
const exitInterrupted = 130

var errUsage = errors.New("usage: holdfast-dev demo|dev")

func main() {
	silence()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	go cancelWithParent(ctx, cancel)
	err := run(ctx, os.Args[1:])
	interrupted := ctx.Err() != nil
	cancel()
	stop()
	switch {
	case interrupted:
		fmt.Fprintln(os.Stderr, "stopped")
		os.Exit(exitInterrupted)
	case err != nil:
		fmt.Fprintln(os.Stderr, "\nFAILED:", err)
		os.Exit(1)
	}
}

// silence the Kubernetes client: what matters of its errors comes back as errors.
func silence() {
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errUsage
	}
	switch args[0] {
	case "demo":
		return demo(ctx)
	case "dev":
		return dev(ctx)
	default:
		return errUsage
	}
}

// cancelWithParent ends the work when the process that started this one is gone: "go run" and make pass Ctrl-C on, but when
// they are killed in another way nobody tells their children.
func cancelWithParent(ctx context.Context, cancel context.CancelFunc) {
	parent := os.Getppid()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if os.Getppid() != parent {
				cancel()
			}
		}
	}
}

// newDir makes a fresh folder for one stack below .env in the checkout, which Git ignores.
func newDir(pattern string) (string, error) {
	root, err := tools.Root()
	if err != nil {
		return "", err
	}
	parent := filepath.Join(root, ".env")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("make a folder for the stack: %w", err)
	}
	dir, err := os.MkdirTemp(parent, pattern)
	if err != nil {
		return "", fmt.Errorf("make a folder for the stack: %w", err)
	}
	return dir, nil
}

// cleanUp removes a stack's folder after its end with err, which it returns. The folder stays when something went wrong of which
// there are logs; an interruption is nothing wrong.
func cleanUp(ctx context.Context, dir string, err error) error {
	logs, _ := os.ReadDir(filepath.Join(dir, "logs"))
	if err != nil && ctx.Err() == nil && len(logs) > 0 {
		return err
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// build compiles all that the stack runs and returns the binaries by name.
func build(ctx context.Context) (map[string]string, error) {
	bin, err := tools.Build(ctx, []string{tools.GroupStack}, os.Stdout)
	if err != nil {
		return nil, err
	}
	own, err := tools.BuildHoldfast(ctx, os.Stdout)
	if err != nil {
		return nil, err
	}
	for name, path := range own {
		bin[name] = path
	}
	return bin, nil
}
