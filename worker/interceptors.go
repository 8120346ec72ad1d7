//go:build !outage

package main

import "go.temporal.io/sdk/interceptor"

// interceptors returns none. The build for the outage tests (tag outage) has one that lets a test stop the worker at
// any activity.
func interceptors() []interceptor.WorkerInterceptor { return nil }
