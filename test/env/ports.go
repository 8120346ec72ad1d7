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

// ports hands out free ports, each once.
//
// They lie below the range from which the kernel takes the source ports of outgoing connections. A port from that range
// could be taken by any connection while its component is stopped, even by a client that tries to reach the component: it
// would then talk to itself.
type ports struct {
	mu    sync.Mutex
	given map[int]bool
}

var freePorts = ports{given: map[int]bool{}}

func (p *ports) next() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := min(lastPort, firstEphemeralPort())
	for range 1000 {
		port := firstPort + rand.IntN(last-firstPort) //nolint:gosec // no secret
		if p.given[port] || !portFree(address(port)) {
			continue
		}
		p.given[port] = true
		return port, nil
	}
	return 0, errors.New("no free port on " + loopback)
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
