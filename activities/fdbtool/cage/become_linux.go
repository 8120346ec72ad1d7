package cage

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// errorFD is the pipe's descriptor from Start: the first of ExtraFiles.
const errorFD = 3

// maxFile bounds each file that the program writes: its folder may be in memory.
const maxFile = 1 << 20

// init executes the program that was given to Start, if Start has started this process. It is no first call of main, since what
// the worker imports takes four times as long to initialize as what this package imports.
func init() {
	if len(os.Args) < 3 || os.Args[0] != name {
		return
	}
	err := become(os.Args[1], os.Args[2:])
	_, _ = os.NewFile(errorFD, "error").WriteString(err.Error())
	os.Exit(1)
}

// become returns only if it fails.
func become(plan string, args []string) error {
	var c Cage
	if err := json.Unmarshal([]byte(plan), &c); err != nil {
		return fmt.Errorf("read the plan of the cage: %w", err)
	}
	// The thread that executes the program is the one that survives. The request to be killed with the parent belongs to a thread,
	// and another thread than this may have made it so far.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("have the kernel end this process with its parent: %w", err)
	}
	if os.Getppid() != c.Parent {
		return errors.New("the process that started it is gone")
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: maxFile, Max: maxFile}); err != nil {
		return fmt.Errorf("bound the size of files: %w", err)
	}
	if err := closeOnExec(); err != nil {
		return fmt.Errorf("close inherited descriptors: %w", err)
	}
	if err := c.restrict(); err != nil {
		return fmt.Errorf("restrict by Landlock: %w", err)
	}
	if err := closeDetours(); err != nil {
		return fmt.Errorf("restrict by seccomp: %w", err)
	}
	return fmt.Errorf("execute it: %w", syscall.Exec(args[0], args, os.Environ()))
}

// closeOnExec keeps the program from inheriting anything but its input and outputs.
func closeOnExec() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= errorFD {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
