package env

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
)

const (
	loopback  = "127.0.0.1"
	firstPort = 10000
	lastPort  = 32000
)

// ports hands out free ports, each once, of blocks that no other process hands out from: while a component is stopped nobody
// else's takes its place. The process that listens on a block's first port has the block, until it ends.
//
// They lie below the range from which the kernel takes the source ports of outgoing connections. A port from that range
// could be taken by any connection while its component is stopped, even by a client that tries to reach the component: it
// would then talk to itself.
type ports struct {
	mu    sync.Mutex
	held  []net.Listener
	block []int // what is left of the last one
}

const portsInBlock = 64

var freePorts ports

func (p *ports) next() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for len(p.block) > 0 {
			port := p.block[0]
			p.block = p.block[1:]
			if portFree(address(port)) {
				return port, nil
			}
		}
		if err := p.reserve(); err != nil {
			return 0, err
		}
	}
}

// reserve takes a block that nobody has.
func (p *ports) reserve() error {
	blocks := (min(lastPort, firstEphemeralPort()) - firstPort) / portsInBlock
	for _, block := range rand.Perm(blocks) {
		first := firstPort + block*portsInBlock
		holder, err := net.Listen("tcp", address(first)) //nolint:noctx // it only binds, and does not wait
		if err != nil {
			continue
		}
		p.held = append(p.held, holder)
		for port := first + 1; port < first+portsInBlock; port++ {
			p.block = append(p.block, port)
		}
		return nil
	}
	return errors.New("no free ports on " + loopback)
}

// take returns n free ports.
func (p *ports) take(n int) ([]int, error) {
	taken := make([]int, 0, n)
	for range n {
		port, err := p.next()
		if err != nil {
			return nil, err
		}
		taken = append(taken, port)
	}
	return taken, nil
}

// FreeAddress returns a free address on loopback for a program that a test starts by itself. No other stack gets it.
func FreeAddress() (string, error) {
	port, err := freePorts.next()
	return address(port), err
}

func portFree(address string) bool {
	listener, err := net.Listen("tcp", address) //nolint:noctx // it only binds, and does not wait
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

func firstEphemeralPort() int {
	content, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return lastPort
	}
	var low, high int
	if _, err := fmt.Sscan(string(content), &low, &high); err != nil || low <= firstPort+1000 {
		return lastPort
	}
	return low
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
