package spawn

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attributes puts a child in a process group of its own and lets the kernel kill it when this process dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// AwaitStopped returns when every thread of a child stands still. kill(2) returns before: until the one thread that got the
// signal has had its turn, the others answer on, for long on a busy machine.
func AwaitStopped(pid int) error {
	const limit, interval = time.Minute, time.Millisecond
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(interval) {
		var stopped unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &stopped, unix.WSTOPPED|unix.WNOWAIT|unix.WNOHANG, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if err == nil && stopped.Signo != 0 {
			return nil
		}
	}
	return fmt.Errorf("process %d does not stand still %s after SIGSTOP", pid, limit)
}
