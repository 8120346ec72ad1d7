// Package temporalserver configures Temporal as it is run: its server's four services on PostgreSQL, with mutual TLS if wanted.
// Package test/env starts the processes.
package temporalserver
