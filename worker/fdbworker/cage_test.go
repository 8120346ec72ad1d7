package fdbworker

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestToolsAreKeptFromTemporalAndTheAPIServer(t *testing.T) {
	for address, want := range map[string]uint16{
		"temporal-frontend.temporal:17233": 17233, "dns:///temporal:17233": 17233, "https://10.0.0.1:6443": 6443, "https://10.0.0.1": 443,
		"https://[fd00::1]:6443": 6443, "https://[fd00::1]": 443, "https://rancher:8443/k8s/clusters/c-1": 8443, "127.0.0.1:6444": 6444,
	} {
		assert.Equal(t, want, portOf(address), address)
	}
	flags := &Flags{Cage: cageFlags{Ports: "4500-4502", Require: true}}
	runner := flags.runner("temporal:17233", "https://10.0.0.1:443")
	assert.Subset(t, runner.ClosedPorts, []uint16{17233, 443, 7233, 7243, 7236, 6443})
	assert.Equal(t, []uint16{4500, 4501, 4502}, runner.Ports)
	assert.True(t, runner.RequireCage)
}
