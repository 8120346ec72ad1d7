package policytest

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// SetNonZero sets a value, and every value in it, to something else than zero. Different seeds give different values. It fails
// the test at a kind that it does not know: a new Velero has brought a type of field, and enforcement must be checked for it.
func SetNonZero(t *testing.T, value reflect.Value, seed int) {
	t.Helper()
	if value.Type() == reflect.TypeFor[runtime.RawExtension]() {
		value.Set(reflect.ValueOf(runtime.RawExtension{Raw: fmt.Appendf(nil, `{"name":"%d"}`, seed)}))
		return
	}
	if value.Type() == reflect.TypeFor[resource.Quantity]() {
		value.Set(reflect.ValueOf(resource.MustParse(fmt.Sprintf("%dGi", seed+1))))
		return
	}
	switch value.Kind() {
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value.SetInt(int64(seed) + 1)
	case reflect.Uint8:
		value.SetUint(uint64(seed) + 1)
	case reflect.String:
		value.SetString(string(rune('a' + seed)))
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		SetNonZero(t, value.Elem(), seed)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		SetNonZero(t, value.Index(0), seed)
	case reflect.Map:
		key, element := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		SetNonZero(t, key, seed)
		SetNonZero(t, element, seed)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, element)
	case reflect.Struct:
		for i := range value.NumField() {
			SetNonZero(t, value.Field(i), seed)
		}
	default:
		require.Failf(t, "unknown kind of field", "%s in type %s", value.Kind(), value.Type())
	}
}

// Mutate changes what a field refers to.
func Mutate(field reflect.Value) {
	switch field.Kind() {
	case reflect.Pointer:
		field.Elem().SetZero()
	case reflect.Slice:
		field.Index(0).SetZero()
	case reflect.Map:
		field.Clear()
	case reflect.Struct:
		for i := range field.NumField() {
			Mutate(field.Field(i))
		}
	default: // a copy by nature
	}
}
