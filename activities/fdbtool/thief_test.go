package fdbtool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// loot is what a compromised tool tries to reach.
type loot struct {
	Token    string // the service account's token
	Secret   string // another run's credentials
	Worker   int    // the process that runs the tools
	Temporal string // Temporal's address
	Database string // the database's address
	Outside  string // somebody's folder
	Variable string // one of the worker's
	Abstract string // a socket of the worker's without a path
}

// steal tries everything and prints the error of each attempt; nothing if it succeeded.
func steal(argument string) int {
	var l loot
	if err := json.Unmarshal([]byte(argument), &l); err != nil {
		return 2
	}
	results := map[string]string{}
	for _, attempts := range []map[string]func() error{l.crimes(), l.needs()} {
		for what, attempt := range attempts {
			results[what] = ""
			if err := attempt(); err != nil {
				results[what] = err.Error()
			}
		}
	}
	if json.NewEncoder(os.Stdout).Encode(results) != nil {
		return 2
	}
	return 0
}

// crimes are actions that no tool needs.
func (l loot) crimes() map[string]func() error {
	worker := "/proc/" + strconv.Itoa(l.Worker)
	return map[string]func() error{
		"token":                              read(l.Token),
		"token through the root of /proc":    read("/proc/self/root" + l.Token),
		"token through the worker's root":    read(worker + "/root" + l.Token),
		"inherited descriptor of the token":  l.inherited,
		"another run's secret":               read(l.Secret),
		"another run's secret from here":     read("/proc/self/cwd/../" + filepath.Base(filepath.Dir(l.Secret)) + "/" + filepath.Base(l.Secret)),
		"list of all runs":                   list(filepath.Dir(filepath.Dir(l.Secret))),
		"environment of the worker":          read(worker + "/environ"),
		"command line of the worker":         read(worker + "/cmdline"),
		"memory of the worker":               l.memory,
		"list of all processes":              list("/proc"),
		"variable of the worker":             l.inheritedVariable,
		"users of the machine":               read("/etc/passwd"),
		"file outside":                       write(filepath.Join(l.Outside, "written")),
		"removal of the worker's file":       func() error { return os.Remove(filepath.Join(l.Outside, "worker's")) },
		"Temporal":                           l.dial(false),
		"Temporal by multipath TCP":          l.dial(true),
		"Temporal by a fast open":            l.fastOpen,
		"io_uring, which does it all unseen": ring,
		"port of its own":                    listen,
		"port of its own, whichever":         listenUnbound,
		"signal to the worker":               func() error { return syscall.Kill(l.Worker, 0) },
		"socket of the worker":               func() error { return dial("unix", l.Abstract) },
		"limits of the worker":               l.limits,
		"priority of the worker":             l.priority,
		"child that nobody ends":             deserter,
	}
}

// optional are attempts that need something a machine may not have.
var optional = []string{"Temporal by multipath TCP", "Temporal by a fast open", "io_uring, which does it all unseen"}

// needs are actions that tools must be able to do.
func (l loot) needs() map[string]func() error {
	own := "/proc/" + strconv.Itoa(os.Getpid())
	return map[string]func() error{
		"own secret":          read(os.Getenv("FDB_BLOB_CREDENTIALS")),
		"own folder":          replace,
		"own process":         read(own + "/statm"),
		"name of a thread":    device(own+"/task/"+strconv.Itoa(os.Getpid())+"/comm", os.O_RDWR),
		"own network":         read("/proc/net/dev"),
		"memory":              read("/proc/meminfo"),
		"processors":          read("/proc/stat"),
		"disks":               read("/proc/diskstats"),
		"random numbers":      device("/dev/urandom", os.O_RDONLY),
		"nothing":             device("/dev/null", os.O_RDWR),
		"names":               read("/etc/hosts"),
		"libraries":           list("/usr/lib"),
		"database":            func() error { return dial("tcp", l.Database) },
		"descriptors 0, 1, 2": standard,
	}
}

func read(path string) func() error {
	return func() error {
		_, err := os.ReadFile(path)
		return err
	}
}

func list(path string) func() error {
	return func() error {
		_, err := os.ReadDir(path)
		return err
	}
}

func write(path string) func() error {
	return func() error { return os.WriteFile(path, []byte("x"), 0o600) }
}

func device(path string, flag int) func() error {
	return func() error {
		file, err := os.OpenFile(path, flag, 0)
		if err == nil {
			_ = file.Close()
		}
		return err
	}
}

// replace does what FoundationDB's client does with the cluster file when the coordinators change.
func replace() error {
	if err := os.WriteFile("new.tmp", []byte("x"), 0o600); err != nil {
		return err
	}
	return os.Rename("new.tmp", "fdb.cluster")
}

func (l loot) inherited() error {
	entries, err := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		if target, _ := os.Readlink("/proc/self/fd/" + entry.Name()); target == l.Token {
			return nil
		}
	}
	return errors.Join(err, errors.New("not inherited"))
}

func standard() error {
	for fd := range 3 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			return fmt.Errorf("descriptor %d: %w", fd, err)
		}
	}
	return nil
}

func (l loot) inheritedVariable() error {
	if os.Getenv(l.Variable) == "" {
		return errors.New("not set")
	}
	return nil
}

// memory reads at an address that has no memory: only the permission counts.
func (l loot) memory() error {
	local := make([]byte, 1)
	_, err := unix.ProcessVMReadv(l.Worker, []unix.Iovec{{Base: &local[0], Len: 1}}, []unix.RemoteIovec{{Base: 0, Len: 1}}, 0)
	if errors.Is(err, syscall.EFAULT) {
		return nil
	}
	return err
}

func dial(network, address string) error {
	connection, err := (&net.Dialer{Timeout: patience}).DialContext(context.Background(), network, address)
	if err == nil {
		_ = connection.Close()
	}
	return err
}

func (l loot) dial(multipath bool) func() error {
	return func() error {
		dialer := &net.Dialer{Timeout: patience}
		dialer.SetMultipathTCP(multipath)
		if multipath { // the dialer falls back to plain TCP
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_MPTCP)
			if err != nil {
				return err
			}
			_ = unix.Close(fd)
		}
		connection, err := dialer.DialContext(context.Background(), "tcp", l.Temporal)
		if err == nil {
			_ = connection.Close()
		}
		return err
	}
}

// fastOpen sends without a connect.
func (l loot) fastOpen() error {
	address, err := net.ResolveTCPAddr("tcp4", l.Temporal)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: address.Port, Addr: [4]byte(address.IP.To4())})
}

func ring() error {
	_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 0, 0, 0)
	if errno == unix.EPERM || errno == unix.ENOSYS {
		return errno
	}
	return nil // it was allowed to read, though there is nothing to read
}

// limits reads one limit only, by the call that also sets it.
func (l loot) limits() error {
	var limit unix.Rlimit
	return unix.Prlimit(l.Worker, unix.RLIMIT_CPU, nil, &limit)
}

// priority sets the present value.
func (l loot) priority() error {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, l.Worker)
	if err != nil {
		return err
	}
	return unix.Setpriority(unix.PRIO_PROCESS, l.Worker, 20-raw) // the system call counts from 40 down to 1
}

// deserter leaves the process group, by which a run ends its processes.
func deserter() error {
	child := exec.CommandContext(context.Background(), "/proc/self/exe", "--deserted")
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err := child.Run()
	if child.ProcessState != nil {
		return nil // it ran
	}
	return err
}

// listenUnbound lets the kernel choose the port.
func listenUnbound() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Listen(fd, 1)
}

func listen() error {
	config := net.ListenConfig{}
	config.SetMultipathTCP(false)
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err == nil {
		_ = listener.Close()
	}
	return err
}
