package fdbtool

import "syscall"

// attributes puts a tool in a process group of its own, and has the kernel kill it when the thread that started it ends: with
// the worker, however that ends. See Session.execute for the thread.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
