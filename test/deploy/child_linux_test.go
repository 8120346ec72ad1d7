package deploy_test

import "syscall"

// childAttributes lets the kernel kill a child when the test dies.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
