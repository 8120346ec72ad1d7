// Command fdbsim is fdbbackup, fdbrestore, fdbcli and backup_agent of package fdbsim, by the name that it is called by.
package main

import (
	"os"

	"holdfast.dev/holdfast/test/fdbsim"
)

func main() { os.Exit(fdbsim.Main()) }
