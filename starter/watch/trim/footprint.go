package trim

import "reflect"

// Footprint is about how many bytes a value takes in memory. The size of its JSON says little: an empty element of a list is
// two bytes there, and may be two hundred here.
func Footprint(value any) int {
	v := reflect.ValueOf(value)
	return int(v.Type().Size()) + held(v)
}

// held is the size of what a value refers to. Unexported fields, as in a time, are not a tenant's.
func held(v reflect.Value) int {
	total := 0
	switch v.Kind() {
	case reflect.String:
		total = v.Len()
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			total = int(v.Elem().Type().Size()) + held(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				total += held(v.Field(i))
			}
		}
	case reflect.Slice:
		total = v.Cap() * int(v.Type().Elem().Size())
		for i := range v.Len() {
			if v.Type().Elem().Kind() == reflect.Uint8 {
				break
			}
			total += held(v.Index(i))
		}
	case reflect.Map:
		if v.IsNil() {
			break
		}
		const header, smallest = 48, 8
		total = header + max(smallest, 2*v.Len())*int(v.Type().Key().Size()+v.Type().Elem().Size())
		for pairs := v.MapRange(); pairs.Next(); {
			total += held(pairs.Key()) + held(pairs.Value())
		}
	}
	return total
}
