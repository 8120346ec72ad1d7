//go:build !linux

package fdbtool

import "syscall"

// attributes puts a tool in a process group of its own. Here nothing kills it when the worker is killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
