package outage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Proxy passes TCP connections on to a server. While it is paused nothing passes, in either direction: to its clients the
// server is as it is when its process is stopped by SIGSTOP, and what was on its way arrives late. Other clients of the
// server notice nothing.
type Proxy struct {
	listener net.Listener
	target   string

	flow sync.RWMutex // held for writing while paused, for reading while something is forwarded

	mutex       sync.Mutex
	connections map[net.Conn]struct{}
	closed      bool
}

// NewProxy listens on loopback until Close is called.
func NewProxy(ctx context.Context, target string) (*Proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	p := &Proxy{listener: listener, target: target, connections: map[net.Conn]struct{}{}}
	go p.accept()
	return p, nil
}

// Address is host:port of the proxy.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Pause lets nothing pass until Resume is called. It must not be called twice in a row.
func (p *Proxy) Pause() { p.flow.Lock() }

// Resume ends a Pause.
func (p *Proxy) Resume() { p.flow.Unlock() }

// Close ends the proxy and all connections through it. A paused proxy must be resumed first.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.closed = true
	for connection := range p.connections {
		_ = connection.Close()
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(client)
	}
}

func (p *Proxy) serve(client net.Conn) {
	p.flow.RLock()
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.target)
	p.flow.RUnlock()
	if err != nil {
		_ = client.Close()
		return
	}
	if !p.keep(client, server) {
		return
	}
	var group sync.WaitGroup
	group.Go(func() { p.pass(client, server) })
	group.Go(func() { p.pass(server, client) })
	group.Wait()
}

// keep notes the connections, so that Close finds them.
func (p *Proxy) keep(connections ...net.Conn) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, connection := range connections {
		if p.closed {
			_ = connection.Close()
			continue
		}
		p.connections[connection] = struct{}{}
	}
	return !p.closed
}

// pass copies one direction and closes both ends when that has ended.
func (p *Proxy) pass(from, to net.Conn) {
	defer func() {
		_ = from.Close()
		_ = to.Close()
		p.mutex.Lock()
		delete(p.connections, from)
		delete(p.connections, to)
		p.mutex.Unlock()
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.flow.RLock()
			_, writeErr := to.Write(buffer[:n])
			p.flow.RUnlock()
			err = errors.Join(err, writeErr)
		}
		if err != nil && !errors.Is(err, io.ErrShortWrite) {
			return
		}
	}
}
