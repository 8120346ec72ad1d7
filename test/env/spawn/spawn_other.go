//go:build !linux

package spawn

import "syscall"

// attributes puts a child in a process group of its own. There is no parent-death signal here.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// AwaitStopped relies on kill(2) here.
func AwaitStopped(int) error { return nil }
