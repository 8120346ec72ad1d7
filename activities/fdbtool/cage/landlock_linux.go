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

// Paths that every program needs, if they exist. Links are followed: resolv.conf may be one, and so is /proc/self.
var (
	system = []string{
		"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64", "/etc/ld.so.cache",
		"/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
		// /etc/services is for a URL without a port, which stands for the service https.
		"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/services",
		"/proc/self", "/dev/urandom",
	}
	figures = []string{"/proc/meminfo", "/proc/stat", "/proc/diskstats"}
	devices = []string{"/dev/null"}
)

// tasks is where programs, for example fdbcli, name their threads. It has only the process's own threads.
const tasks = "/proc/self/task"

// dns is the port of name servers, for answers that are too long for UDP. Landlock does not restrict UDP.
const dns = 53

// privateAccess is what a program may do in its private folder: no programs, links, sockets or devices.
const privateAccess = landlock.AccessFSSet(llsyscall.AccessFSReadFile | llsyscall.AccessFSReadDir | llsyscall.AccessFSWriteFile |
	llsyscall.AccessFSTruncate | llsyscall.AccessFSMakeReg | llsyscall.AccessFSMakeDir | llsyscall.AccessFSRemoveFile |
	llsyscall.AccessFSRemoveDir)

// restrict drops, for good, every right that the cage does not name, as far as the kernel can.
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

// pin keeps the inode of a file of /proc. When memory is short the kernel would drop it and make a new one, but the rule is for
// the old one. The program inherits these descriptors, by which nothing can be read (O_PATH).
func pin(path string) {
	_, _ = unix.Open(path, unix.O_PATH, 0) // a file that does not exist needs no rule
}

// add adds a rule for a path that exists. Files have fewer rights than folders.
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

// wanted is the version of Landlock that restricts ports: Linux 6.7.
const wanted = 4

// Lacking returns an error that says which restrictions this kernel does not support; nil if it supports all.
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
	return fmt.Errorf("this kernel's Landlock (ABI %d; %d is required: Linux 6.7) does not keep FoundationDB's tools from %s",
		version, wanted, strings.Join(free, " and from "))
}
