package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
)

const headerTimeout = 5 * time.Second

// Serve answers requests at address until ctx ends. It returns an error at once if it cannot listen.
func Serve(ctx context.Context, logger *zap.Logger, address string, handler http.Handler) error {
	if address == "0" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			logger.Error("serve", zap.String("address", address), zap.Error(err))
		}
	}()
	return nil
}
