package policy

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/resource"
)

// DefaultMaxArchiveSize is TenantsBuckets.MaxArchiveSize if the policy sets none.
const DefaultMaxArchiveSize = 4 << 30

// TenantsBuckets says how the buckets of tenants' storage locations are read, into which tenants write what they like.
type TenantsBuckets struct {
	// VeleroSynchronizes leaves it to Velero to bring Backups from these buckets into the cluster. It reads their files whatever
	// their size: one file can take the memory of the Velero that serves all tenants.
	VeleroSynchronizes bool `json:"veleroSynchronizes,omitempty"`
	// MaxArchiveSize is how large the archive of a backup in such a bucket may be, unpacked.
	MaxArchiveSize *resource.Quantity `json:"maxArchiveSize,omitempty"`
}

// MaxArchive returns MaxArchiveSize in bytes.
func (t TenantsBuckets) MaxArchive() int64 {
	if t.MaxArchiveSize == nil {
		return DefaultMaxArchiveSize
	}
	return t.MaxArchiveSize.Value()
}

func decodeTenantsBuckets(name string, value json.RawMessage, into *TenantsBuckets) []string {
	problems := decodeStruct(name, value, into)
	if into.MaxArchiveSize != nil && into.MaxArchiveSize.Sign() <= 0 {
		problems = append(problems, name+".maxArchiveSize must be more than 0")
	}
	return problems
}
