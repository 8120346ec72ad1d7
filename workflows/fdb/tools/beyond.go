package tools

import "holdfast.dev/holdfast/workflows/contract"

// Beyond is what objects say of the members that a coordinator does not carry; nothing if they say none.
func Beyond(found *contract.Beyond) contract.Beyond {
	if found == nil {
		return contract.Beyond{}
	}
	return *found
}
