package env

import "syscall"

// childAttributes puts a child in a process group of its own and lets the kernel kill it when this process dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
