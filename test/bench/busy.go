package main

import (
	"context"
	"fmt"
	"os/exec"
)

// busyLoop keeps one core busy. It ends with its parent, however that ends.
const busyLoop = `while kill -0 $PPID; do :; done`

// startBusyLoops starts processes that compete for the CPU until stop is called.
func startBusyLoops(ctx context.Context, count int) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var loops []*exec.Cmd
	stop = func() {
		cancel()
		for _, loop := range loops {
			_ = loop.Wait() // killed
		}
	}
	for range count {
		loop := exec.CommandContext(ctx, "sh", "-c", busyLoop)
		if err := loop.Start(); err != nil {
			stop()
			return nil, fmt.Errorf("start a busy loop: %w", err)
		}
		loops = append(loops, loop)
	}
	return stop, nil
}
