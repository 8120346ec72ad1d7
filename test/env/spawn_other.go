//go:build !linux

package env

import "syscall"

// childAttributes puts a child in a process group of its own. There is no parent-death signal here.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitStopped relies on kill(2) here.
func awaitStopped(int) error { return nil }
