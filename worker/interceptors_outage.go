//go:build outage

package main

import (
	"go.temporal.io/sdk/interceptor"

	"holdfast.dev/holdfast/k8s/process/failpoint"
)

func interceptors() []interceptor.WorkerInterceptor {
	return []interceptor.WorkerInterceptor{failpoint.Interceptor()}
}
