//go:build !linux

package cage

import (
	"errors"
	"os/exec"
)

// Start starts the command without a cage.
func (Cage) Start(command *exec.Cmd) error { return command.Start() }

// Lacking says that this system has no cage.
func Lacking() error {
	return errors.New("this system has no Landlock: FoundationDB's tools run without a cage")
}
