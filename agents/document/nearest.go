package document

import (
	"reflect"
	"strings"

	"muster/budget"
)

// nearest is the field that an unknown name in a value of a type (as the parser names it) was most probably meant to be; "" where none
// is near. v is what the document is read into.
func nearest(name, typeName string, v any) string {
	for _, known := range budget.Likely(name, fieldsOf(typeName, reflect.TypeOf(v), map[reflect.Type]bool{}), 1) {
		return known
	}
	return ""
}

// fieldsOf finds the type with a name in what t is made of, and lists its fields by their names in YAML.
func fieldsOf(typeName string, t reflect.Type, seen map[reflect.Type]bool) []string {
	switch {
	case seen[t]:
		return nil
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice, t.Kind() == reflect.Map:
		return fieldsOf(typeName, t.Elem(), seen)
	case t.Kind() != reflect.Struct:
		return nil
	}
	seen[t] = true
	if t.String() == typeName {
		return namesOf(t)
	}
	for f := range t.Fields() {
		if names := fieldsOf(typeName, f.Type, seen); names != nil {
			return names
		}
	}
	return nil
}

func namesOf(t reflect.Type) (names []string) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case options == "inline":
			names = append(names, namesOf(f.Type)...)
		case name != "" && name != "-":
			names = append(names, name)
		}
	}
	return names
}
