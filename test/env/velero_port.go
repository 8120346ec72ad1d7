package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/holdfast/test/tools"
)

// veleroManagerPort is where Velero's controller manager serves metrics. No flag changes it.
const veleroManagerPort = 8080

// reserveVeleroPort makes sure that this stack's Velero is the only one on the machine, and that its port is free. The
// reservation is a file lock: it ends with Stop, and with the process in any case.
func (e *Env) reserveVeleroPort(ctx context.Context) error {
	path := filepath.Join(os.TempDir(), "holdfast-velero-"+strconv.Itoa(veleroManagerPort)+".lock")
	owner := path + ".owner"
	lockCtx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	var holder string
	release, err := tools.LockFile(lockCtx, path, func() {
		holder = readOwner(owner)
		if e.options.WaitForOthers {
			e.progress.say("waiting for the other Holdfast stack on this machine to end (%s)", holder)
			return
		}
		giveUp()
	})
	if err != nil {
		if holder != "" && ctx.Err() == nil {
			return fmt.Errorf("another Holdfast stack runs on this machine (%s): stop that make dev, demo or test first, "+
				"because Velero's port :%d cannot be changed", holder, veleroManagerPort)
		}
		return err
	}
	e.mu.Lock()
	e.release = release
	e.mu.Unlock()
	text := fmt.Sprintf("process %d, data in %s", os.Getpid(), e.dir)
	_ = os.WriteFile(owner, []byte(text), 0o644) //nolint:gosec // only for the message above, to be read by other users
	return e.awaitFreePort(ctx)
}

// awaitFreePort allows a Velero that is just being killed a moment to disappear.
func (e *Env) awaitFreePort(ctx context.Context) error {
	err := poll(ctx, 5*time.Second, func() error {
		if portFree(":" + strconv.Itoa(veleroManagerPort)) {
			return nil
		}
		return errors.New("in use")
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("port :%[1]d is taken by another program, but Velero needs it and cannot use another: "+
			"stop that program (find it with: ss -ltnp 'sport = :%[1]d')", veleroManagerPort)
	}
	return err
}

func readOwner(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return "it left no note about itself"
	}
	return strings.TrimSpace(string(content))
}
