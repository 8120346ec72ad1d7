package spawn

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes puts a child in a process group of its own and lets the kernel kill it when this process dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// AwaitStopped returns when every thread of a child stands still. kill(2) returns before: until the one thread that got the
// signal has had its turn, the others answer on, for long on a busy machine.
func AwaitStopped(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
