//go:build outage

package main

import (
	"go.temporal.io/sdk/interceptor"

	"holdfast.dev/holdfast/test/outage/points"
)

func interceptors() []interceptor.WorkerInterceptor {
	return []interceptor.WorkerInterceptor{points.Interceptor()}
}
