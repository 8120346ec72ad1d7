package check

import (
	"fmt"
	"math"
	"reflect"
)

// MaxParallel is how many files a tenant may have copied at once, unless the administrator enforces a number: Velero's node
// agent, which serves all tenants, makes as many workers as a spec asks for, each with buffers of its own.
const MaxParallel = 256

// BadNumber says which duration or count of a Velero spec means nothing, although Velero would take it, or is too large; empty if
// none is. A negative ttl, for example, has a backup deleted as soon as it is complete (velero#10182). path is where the spec is
// in its object; enforced is the administrator's spec of the same type.
func BadNumber(path string, spec, enforced any) string {
	parallel := int64(MaxParallel)
	if its := reflect.ValueOf(enforced); !its.IsNil() && !isUnset(its.Elem().FieldByName("UploaderConfig")) {
		parallel = math.MaxInt64 // the administrator's
	}
	return badNumber(path, reflect.ValueOf(spec), parallel)
}

func badNumber(path string, value reflect.Value, parallel int64) string {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			return badNumber(path, value.Elem(), parallel)
		}
	case reflect.Struct:
		return badField(path, value, parallel)
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 { // raw JSON
			return ""
		}
		for i := range value.Len() {
			if problem := badNumber(fmt.Sprintf("%s[%d]", path, i), value.Index(i), parallel); problem != "" {
				return problem
			}
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		if value.Int() < 0 {
			return fmt.Sprintf("%s must not be negative: %v", path, value.Interface())
		}
		if value.Kind() == reflect.Int && value.Int() > parallel { // in Velero's specs an int is how many files are copied at once
			return fmt.Sprintf("%s must be at most %d: %v", path, parallel, value.Interface())
		}
	default: // says no number
	}
	return ""
}

func badField(path string, value reflect.Value, parallel int64) string {
	for i := range value.NumField() {
		field := value.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		at := path
		if name := JSONName(field); name != "" { // else it is embedded
			at += "." + name
		}
		if problem := badNumber(at, value.Field(i), parallel); problem != "" {
			return problem
		}
	}
	return ""
}
