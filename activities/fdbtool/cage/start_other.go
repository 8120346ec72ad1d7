//go:build !linux

package cage

import (
	"errors"
	"os/exec"
)

// Main does nothing: there is no cage here.
func Main() {}

// Start starts the command without a cage.
func (Cage) Start(command *exec.Cmd) error { return command.Start() }

// Lacking says what the system does not keep a program from.
func Lacking() error {
	return errors.New("this system has no Landlock: FoundationDB's tools run without a cage")
}
