// Package tenants is what tests of several stacks do with a tenant's objects: back up, wait for the end, read what was made.
package tenants
