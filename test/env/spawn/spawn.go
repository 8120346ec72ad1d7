package spawn

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// spawner is one goroutine that never leaves its thread and never ends. Children are started on it, because Linux delivers
// the parent-death signal when the thread that made the child ends, not when the process does.
var spawner = sync.OnceValue(func() chan<- func() {
	requests := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range requests {
			start()
		}
	}()
	return requests
})

// Start starts a child in a process group of its own, on that thread, as another user unless that is nil. On Linux the kernel
// kills it when this process dies.
func Start(cmd *exec.Cmd, as *syscall.Credential) error {
	cmd.SysProcAttr = attributes()
	cmd.SysProcAttr.Credential = as
	result := make(chan error, 1)
	spawner() <- func() { result <- cmd.Start() }
	return <-result
}
