package cage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

const (
	// name is the name of the copy of this process until it executes the program.
	name = "holdfast-cage"
	// maxError bounds the copy's error message.
	maxError = 4 << 10
)

// Start starts a command within the cage, like command.Start: an error says that the program does not run. The command must have
// no ExtraFiles; it gets no other descriptors than its three. The caller must lock its thread (runtime.LockOSThread) until the
// program has ended, because the program ends with the thread.
func (c Cage) Start(command *exec.Cmd) error {
	if command.Err != nil {
		return command.Err
	}
	c.Parent = os.Getpid()
	plan, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write the plan of the cage: %w", err)
	}
	errorReader, errorWriter, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("open a pipe to the cage: %w", err)
	}
	defer errorReader.Close()
	// Not the path of the executable: another file may have it by now.
	command.Args = append([]string{name, string(plan), command.Path}, command.Args[1:]...)
	command.Path, command.ExtraFiles = "/proc/self/exe", []*os.File{errorWriter}
	err = command.Start()
	_ = errorWriter.Close()
	if err != nil {
		return err
	}
	// The pipe closes when the program begins, or when the copy ends before.
	if why, _ := io.ReadAll(io.LimitReader(errorReader, maxError)); len(why) > 0 {
		_ = command.Wait()
		return errors.New(string(why))
	}
	return nil
}
