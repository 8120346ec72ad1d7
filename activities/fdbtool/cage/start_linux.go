package cage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
)

const (
	// name is what the copy of this process is called until it becomes the program.
	name = "holdfast-cage"
	// maxTold bounds what the copy says.
	maxTold = 4 << 10
)

// ready: Main was called. A copy of a process that does not call it would do again all that the process does.
var ready atomic.Bool

// Start starts a command within the cage, as command.Start does without one: an error says that the program does not run.
// The command must have no ExtraFiles; it gets no other descriptors than its three. The thread must be the caller's own
// (runtime.LockOSThread) until the program has ended, since it ends with the thread.
func (c Cage) Start(command *exec.Cmd) error {
	if !ready.Load() {
		return errors.New("this program does not call cage.Main")
	}
	if command.Err != nil {
		return command.Err
	}
	c.Parent = os.Getpid()
	plan, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write the plan of the cage: %w", err)
	}
	told, tell, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("open a pipe to the cage: %w", err)
	}
	defer told.Close()
	// Not the path of the executable: that may be another file by now.
	command.Args = append([]string{name, string(plan), command.Path}, command.Args[1:]...)
	command.Path, command.ExtraFiles = "/proc/self/exe", []*os.File{tell}
	err = command.Start()
	_ = tell.Close()
	if err != nil {
		return err
	}
	// The pipe closes when the program begins, or when the copy ends before.
	if why, _ := io.ReadAll(io.LimitReader(told, maxTold)); len(why) > 0 {
		_ = command.Wait()
		return errors.New(string(why))
	}
	return nil
}
