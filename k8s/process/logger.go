package process

import (
	"fmt"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Logger builds the process's logger and makes client-go and controller-runtime use it.
func (f *Flags) Logger() (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(f.LogLevel)
	if err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	config := zap.NewProductionConfig()
	config.Encoding = f.LogFormat
	config.Level = zap.NewAtomicLevelAt(level)
	config.EncoderConfig.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	config.EncoderConfig.TimeKey = "time"
	config.Sampling = nil
	config.DisableStacktrace = true
	logger, err := config.Build()
	if err != nil {
		return nil, fmt.Errorf("build logger: %w", err)
	}
	bridge := zapr.NewLogger(logger)
	klog.SetLogger(bridge)
	ctrllog.SetLogger(bridge)
	return logger, nil
}
