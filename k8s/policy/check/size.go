package check

import "encoding/json"

// MaxSpecBytes bounds a spec: its object holds it twice (the status repeats Velero's copy), the last-applied annotation may
// hold it once more, and etcd accepts 1.5 MiB.
const MaxSpecBytes = 256 << 10

// Size returns the bytes of a spec as JSON.
func Size(spec any) int {
	data, err := json.Marshal(spec)
	if err != nil {
		return MaxSpecBytes + 1
	}
	return len(data)
}
