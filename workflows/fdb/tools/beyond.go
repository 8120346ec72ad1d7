package tools

import "holdfast.dev/holdfast/workflows/contract"

// Beyond returns what is known of the members that a coordinator does not carry; the zero value if there are none.
func Beyond(found *contract.Beyond) contract.Beyond {
	if found == nil {
		return contract.Beyond{}
	}
	return *found
}
