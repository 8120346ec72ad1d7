//go:build outage

package main

import (
	"go.temporal.io/sdk/interceptor"

	"holdfast.dev/holdfast/k8s/process/points"
)

func interceptors() []interceptor.WorkerInterceptor {
	return []interceptor.WorkerInterceptor{points.Interceptor()}
}
