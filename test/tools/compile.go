package tools

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// interruptGrace is how long an interrupted go command gets to remove its temporary folder before it is killed.
const interruptGrace = 5 * time.Second

var majorSuffix = regexp.MustCompile(`^v[0-9]+$`)

// binaryName is the name that go build gives to the binary of a package: the last element of its path that is not a
// major version.
func binaryName(pkg string) string {
	base := path.Base(pkg)
	if majorSuffix.MatchString(base) {
		base = path.Base(path.Dir(pkg))
	}
	return base
}

// goCommand is a call of the go command.
type goCommand struct {
	dir  string
	args []string
	env  []string
}

// runGo runs a go command in a process group of its own and passes each line that it prints to observe. An error carries
// what the compiler had to say. When ctx ends, the go command and the compilers below it are stopped, and runGo returns
// after them.
func runGo(ctx context.Context, command goCommand, observe func(line string)) error {
	work, err := os.MkdirTemp("", "holdfast-build-")
	if err != nil {
		return fmt.Errorf("make a folder for the compiler: %w", err)
	}
	defer os.RemoveAll(work)
	cmd := exec.Command("go", command.args...) //nolint:noctx // exec would kill the go command alone and leave its compilers
	cmd.Dir = command.dir
	// A compiler lives for seconds, and takes a tenth less time without garbage collection. An interrupted one leaves files behind.
	cmd.Env = slices.Concat([]string{"GOGC=off", "GOMEMLIMIT=2GiB"}, command.env, []string{"GOTMPDIR=" + work})
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in

	complaints := make(chan []string, 1)
	go func() { complaints <- readLines(out, observe) }()
	if err := cmd.Start(); err != nil {
		closeQuietly(in)
		return fmt.Errorf("start go: %w", err)
	}
	exited := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		interruptGroup(ctx, cmd.Process.Pid, exited)
	}()
	err = cmd.Wait()
	close(exited)
	closeQuietly(in)
	<-stopped
	lines := <-complaints
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", command.args[0], err, strings.Join(lines, "\n"))
	}
	return nil
}

// interruptGroup waits for the end of ctx or of the process. In the first case it interrupts the process group, and kills
// what is left of it after a grace.
func interruptGroup(ctx context.Context, pid int, exited <-chan struct{}) {
	select {
	case <-exited:
		return
	case <-ctx.Done():
	}
	signalGroup(pid, syscall.SIGINT)
	grace := time.NewTimer(interruptGrace)
	defer grace.Stop()
	select {
	case <-exited:
	case <-grace.C:
	}
	signalGroup(pid, syscall.SIGKILL)
}

// signalGroup ignores errors: the only one to expect says that the group is gone.
func signalGroup(pid int, sig syscall.Signal) { _ = syscall.Kill(-pid, sig) }

// readLines passes each line to observe and returns the last of those that are neither a package's name (go build -v) nor a
// download: what is left are complaints.
func readLines(r io.Reader, observe func(string)) []string {
	const keep = 60
	var lines []string
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := scanner.Text()
		observe(line)
		if strings.HasPrefix(line, downloading) || isPackage(line) {
			continue
		}
		lines = append(lines, line)
		if len(lines) > keep {
			lines = lines[1:]
		}
	}
	if err := scanner.Err(); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		lines = append(lines, err.Error())
	}
	_, _ = io.Copy(io.Discard, r) // never block the command, whatever it prints
	return lines
}

const downloading = "go: downloading "

func isPackage(line string) bool {
	return line != "" && !strings.ContainsAny(line, " :\t")
}
