//go:build !linux

package deploy_test

import "syscall"

func childAttributes() *syscall.SysProcAttr { return nil }
