package cage

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsyscall "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// What every program needs, as far as it is there. Links are followed: resolv.conf may be one, and so is /proc/self.
var (
	system = []string{
		"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64", "/etc/ld.so.cache",
		"/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
		// The last is for a URL without a port: it stands for the service https.
		"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/services",
		"/proc/self", "/dev/urandom",
	}
	figures = []string{"/proc/meminfo", "/proc/stat", "/proc/diskstats"}
	devices = []string{"/dev/null"}
)

// tasks is written to by programs that name their threads, fdbcli for one. Only what is its own is there.
const tasks = "/proc/self/task"

// dns is the port of the name servers, where an answer is too long for UDP, which Landlock leaves alone.
const dns = 53

// privateAccess is what a program may do in its private folder: no programs, links, sockets or devices.
const privateAccess = landlock.AccessFSSet(llsyscall.AccessFSReadFile | llsyscall.AccessFSReadDir | llsyscall.AccessFSWriteFile |
	llsyscall.AccessFSTruncate | llsyscall.AccessFSMakeReg | llsyscall.AccessFSMakeDir | llsyscall.AccessFSRemoveFile |
	llsyscall.AccessFSRemoveDir)

// restrict gives up, for good, what the cage does not name, as far as the kernel knows to.
func (c Cage) restrict() error {
	for _, path := range append(figures, tasks) {
		pin(path)
	}
	var rules []landlock.Rule
	for _, path := range slices.Concat(system, figures, c.Read) {
		rules = add(rules, path, landlock.RODirs, landlock.ROFiles)
	}
	for _, path := range slices.Concat(devices, c.Open) {
		rules = add(rules, path, landlock.RWDirs, landlock.RWFiles)
	}
	if c.Private != "" {
		rules = append(rules, landlock.PathAccess(privateAccess, c.Private))
	}
	rules = append(rules, landlock.PathAccess(llsyscall.AccessFSWriteFile, tasks))
	for _, port := range append([]uint16{dns}, c.Ports...) {
		rules = append(rules, landlock.ConnectTCP(port))
	}
	return landlock.V9.BestEffort().Restrict(rules...)
}

// pin keeps a file of /proc as it is. The kernel would forget it when memory is short and make it anew, and a rule is about the
// old one. So the program gets descriptors after all: by these nothing can be read (O_PATH).
func pin(path string) {
	_, _ = unix.Open(path, unix.O_PATH, 0) // what is not there cannot be read either
}

// add adds a rule for a path that is there: some rights are those of folders only.
func add(rules []landlock.Rule, path string, folder, file func(...string) landlock.FSRule) []landlock.Rule {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return rules
	case info.IsDir():
		return append(rules, folder(path).IgnoreIfMissing())
	}
	return append(rules, file(path).IgnoreIfMissing())
}

// wanted is the version of Landlock's interface that knows ports: Linux 6.7.
const wanted = 4

// Lacking says what this kernel does not keep a caged program from.
func Lacking() error {
	version, err := llsyscall.LandlockGetABIVersion()
	if err != nil {
		version = 0
	}
	return lacking(version)
}

func lacking(version int) error {
	switch {
	case version >= wanted:
		return nil
	case version < 1:
		return fmt.Errorf("this kernel has no Landlock, or it is not switched on: FoundationDB's tools reach every file, process and " +
			"port that the worker reaches")
	}
	free := []string{"connecting to any port"}
	if version < 3 { // truncation came with 3
		free = append(free, "emptying any file that the worker may write")
	}
	return fmt.Errorf("this kernel's Landlock (ABI %d, %d is wanted: Linux 6.7) does not keep FoundationDB's tools from %s",
		version, wanted, strings.Join(free, " and from "))
}
