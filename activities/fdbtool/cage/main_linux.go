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

// tellFD is where Start has laid its pipe: the first of ExtraFiles.
const tellFD = 3

// maxFile bounds each file that the program writes: its folder may be memory that others need too.
const maxFile = 1 << 20

// Main makes this process the program that Start was given, if Start has started it; else it returns at once. It must come
// first of all: in main, and in TestMain of tests that use Start.
func Main() {
	if len(os.Args) < 3 || os.Args[0] != name {
		ready.Store(true)
		return
	}
	err := become(os.Args[1], os.Args[2:])
	_, _ = os.NewFile(tellFD, "tell").WriteString(err.Error())
	os.Exit(1)
}

// become returns only an error.
func become(plan string, args []string) error {
	var c Cage
	if err := json.Unmarshal([]byte(plan), &c); err != nil {
		return fmt.Errorf("read the plan of the cage: %w", err)
	}
	// The thread that executes is the one that lives on. What asks the kernel to end it with its parent is its own, and another
	// thread than this may have been asked so far.
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

// closeOnExec has the program inherit nothing but its input and outputs.
func closeOnExec() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= tellFD {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
