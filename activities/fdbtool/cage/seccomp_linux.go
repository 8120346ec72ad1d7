package cage

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// machines are the architectures that the filter is written for, with the kernel's numbers. There is no filter for others.
var machines = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// Offsets in the kernel's struct seccomp_data; both machines are little-endian.
const (
	callOffset    = 0
	machineOffset = 4
	firstArgument = 16
	// otherCalls is the first number of x86-64's second set of system calls (x32).
	otherCalls = 0x40000000
)

var (
	allow = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	deny  = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
)

// closeDetours denies, for good, what Landlock does not restrict. It denies ways to a TCP port without a connect: sockets of
// other kinds that speak plain TCP (multipath TCP, SMC), data that open a connection (MSG_FASTOPEN), and io_uring, which no
// filter sees. It denies listening without a bind, and access to other processes of the same user.
func closeDetours() error {
	machine, known := machines[runtime.GOARCH]
	if !known {
		return nil
	}
	assembled, err := bpf.Assemble(detours(machine, uint32(os.Getpid())))
	if err != nil {
		return fmt.Errorf("assemble the filter: %w", err)
	}
	filter := make([]unix.SockFilter, len(assembled))
	for i, one := range assembled {
		filter[i] = unix.SockFilter{Code: one.Op, Jt: one.Jt, Jf: one.Jf, K: one.K}
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

func detours(machine, own uint32) []bpf.Instruction {
	fastOpen := func(flags int) []bpf.Instruction {
		return []bpf.Instruction{argument(flags), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.MSG_FASTOPEN, SkipFalse: 1}, deny, allow}
	}
	return slices.Concat(
		[]bpf.Instruction{bpf.LoadAbsolute{Off: machineOffset, Size: 4}}, oneOf(machine),
		[]bpf.Instruction{
			bpf.LoadAbsolute{Off: callOffset, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: otherCalls, SkipFalse: 1},
			deny,
		},
		on(unix.SYS_IO_URING_SETUP, []bpf.Instruction{deny}),
		on(unix.SYS_SOCKET, slices.Concat(
			[]bpf.Instruction{argument(0)}, oneOf(unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK),
			[]bpf.Instruction{argument(2)}, oneOf(0, unix.IPPROTO_TCP, unix.IPPROTO_UDP),
			[]bpf.Instruction{allow})),
		on(unix.SYS_SENDTO, fastOpen(3)),
		on(unix.SYS_SENDMSG, fastOpen(2)),
		on(unix.SYS_SENDMMSG, fastOpen(3)),
		on(unix.SYS_SETSOCKOPT, []bpf.Instruction{
			argument(1),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOL_TCP, SkipFalse: 3},
			argument(2),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TCP_ULP, SkipFalse: 1},
			deny, allow,
		}),
		on(unix.SYS_LISTEN, []bpf.Instruction{deny}),
		othersProcesses(own),
		[]bpf.Instruction{allow},
	)
}

// othersProcesses denies leaving the process group, by which a run ends its processes, and changing another process of the same
// user: its limits, its priority, its life.
func othersProcesses(own uint32) []bpf.Instruction {
	var program []bpf.Instruction
	for _, call := range []uint32{
		unix.SYS_SETSID, unix.SYS_SETPGID, unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET, unix.SYS_TKILL,
		unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL,
	} {
		program = append(program, on(call, []bpf.Instruction{deny})...)
	}
	for _, call := range []uint32{
		unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETAFFINITY,
		unix.SYS_KILL, unix.SYS_TGKILL,
	} {
		program = append(program, on(call, slices.Concat([]bpf.Instruction{argument(0)}, oneOf(0, own), []bpf.Instruction{allow}))...)
	}
	return program
}

// argument loads the lower half of an argument; the kernel ignores the upper half of these arguments.
func argument(number int) bpf.Instruction {
	return bpf.LoadAbsolute{Off: uint32(firstArgument + 8*number), Size: 4}
}

// on adds the decision for one call; the decision must return.
func on(call uint32, decision []bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: uint8(len(decision))},
	}, decision...)
}

// oneOf denies all values but these.
func oneOf(values ...uint32) []bpf.Instruction {
	var program []bpf.Instruction
	for i, value := range values {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: value, SkipTrue: uint8(len(values) - i)})
	}
	return append(program, deny)
}
