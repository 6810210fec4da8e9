// Command types prints the Go types of the kinds that its standard input lists, one type a line, with what a decoder, server-side apply and protobuf need of each field. It makes the
// table `types.txt` of the crate:
//
//	go run ./types < ../src/types/kinds.txt > ../src/types/types.txt
//
// A line is `TYPE FIELD..` for a struct, and `TYPE = TYPE` for another name of a type. A field is
// `NAME:NUMBER:TYPE`. The name ends with `?` if an empty value is left out, and is `^` if the fields of
// the type stand in the JSON of the parent; the number is that of protobuf. Behind the type, `[atomic]`,
// `[set]` or `[map:KEY,KEY]` says who owns the parts of a value, `<KEY>` is the key by which a strategic
// merge patch merges a list (`<>`: by value), and `=JSON` is the default. A struct that has one owner
// begins with `:[atomic]`; then `@` stands if an object of the type names its `apiVersion` and `kind`.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

func main() {
	if err := print(os.Stdin); err != nil {
		fmt.Fprintf(os.Stderr, "types: %v\n", err)
		os.Exit(1)
	}
}

func print(kinds io.Reader) error {
	all := scheme.Scheme
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme} {
		if err := add(all); err != nil {
			return err
		}
	}
	table := typeTable{
		lines:   map[string]string{},
		openapi: openapi.GetOpenAPIDefinitions(func(string) spec.Ref { return spec.Ref{} }),
	}
	lines := bufio.NewScanner(kinds)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 || words[0] == "#" {
			continue
		}
		object, err := all.New(schema.FromAPIVersionAndKind(words[0], words[1]))
		if err != nil {
			return err
		}
		table.add(reflect.TypeOf(object).Elem())
	}
	if err := lines.Err(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(table.lines)) {
		fmt.Println(name + table.lines[name])
	}
	return nil
}

type typeTable struct {
	lines   map[string]string
	openapi map[string]common.OpenAPIDefinition
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// name returns the name of a type by its package, e.g. apps.v1.DeploymentSpec.
func typeName(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	return strings.Join(append(parts[max(len(parts)-2, 0):], t.Name()), ".")
}

// add adds the lines of a type and of all types in it, and returns how fields name it.
func (table *typeTable) add(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return "*" + table.add(t.Elem())
	case t.Kind() == reflect.Slice && t.Name() == "" && t.Elem().Kind() == reflect.Uint8:
		return "bytes"
	case t.PkgPath() == "" && t.Kind() == reflect.Slice:
		return "[]" + table.add(t.Elem())
	case t.PkgPath() == "" && t.Kind() == reflect.Map:
		return "map:" + table.add(t.Elem())
	case t.PkgPath() == "":
		return t.Name()
	}
	name := typeName(t)
	if _, found := table.lines[name]; found {
		return name
	}
	switch {
	case reflect.PointerTo(t).Implements(unmarshaler):
		// Its JSON is its own.
	case t.Kind() == reflect.Struct:
		table.lines[name] = ""
		table.lines[name] = table.fields(t)
	case t.Kind() == reflect.Slice:
		table.lines[name] = " = []" + table.add(t.Elem())
	case t.Kind() == reflect.Map:
		table.lines[name] = " = map:" + table.add(t.Elem())
	default:
		table.lines[name] = " = " + t.Kind().String()
	}
	return name
}

func (table *typeTable) fields(t reflect.Type) string {
	var line strings.Builder
	definition := table.definition(t)
	if shape := ownership(definition.Extensions); shape != "" {
		line.WriteString(" :" + shape)
	}
	if field, found := t.FieldByName("TypeMeta"); found && field.Anonymous {
		line.WriteString(" @")
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Type == reflect.TypeFor[metav1.TypeMeta]() || name == "-" || !field.IsExported() {
			continue
		}
		flag := ""
		if name == "" {
			name = "^"
		} else if leavesOut(options, field.Type) {
			flag = "?"
		}
		number := ""
		if parts := strings.Split(field.Tag.Get("protobuf"), ","); len(parts) > 1 {
			number = parts[1]
		}
		fmt.Fprintf(&line, " %s%s:%s:%s", name, flag, number, table.add(field.Type))
		property := definition.Properties[name]
		line.WriteString(ownership(property.Extensions))
		if strategy, _ := property.Extensions["x-kubernetes-patch-strategy"].(string); strings.Contains(strategy, "merge") {
			key, _ := property.Extensions["x-kubernetes-patch-merge-key"].(string)
			line.WriteString("<" + key + ">")
		}
		if empty := reflect.Zero(field.Type); property.Default != nil {
			value, err := json.Marshal(property.Default)
			// The empty value is no default worth a word.
			if zero, _ := json.Marshal(empty.Interface()); err == nil && string(zero) != string(value) && string(value) != "{}" {
				line.WriteString("=" + string(value))
			}
		}
	}
	return line.String()
}

// leavesOut tells whether encoding/json leaves out an empty value; a struct is never empty by omitempty.
func leavesOut(options string, t reflect.Type) bool {
	words := strings.Split(options, ",")
	return slices.Contains(words, "omitzero") || (slices.Contains(words, "omitempty") && t.Kind() != reflect.Struct)
}

// definition returns what OpenAPI says of a type.
func (table *typeTable) definition(t reflect.Type) spec.Schema {
	names := []string{t.PkgPath() + "." + t.Name()}
	if named, ok := reflect.New(t).Interface().(interface{ OpenAPIModelName() string }); ok {
		names = append(names, named.OpenAPIModelName())
	}
	for _, name := range names {
		if definition, found := table.openapi[name]; found {
			return definition.Schema
		}
	}
	return spec.Schema{}
}

func ownership(extensions spec.Extensions) string {
	if extensions["x-kubernetes-map-type"] == "atomic" {
		return "[atomic]"
	}
	switch extensions["x-kubernetes-list-type"] {
	case "atomic":
		return "[atomic]"
	case "set":
		return "[set]"
	case "map":
		var keys []string
		switch found := extensions["x-kubernetes-list-map-keys"].(type) {
		case []interface{}:
			for _, key := range found {
				keys = append(keys, fmt.Sprint(key))
			}
		case []string:
			keys = found
		}
		return "[map:" + strings.Join(keys, ",") + "]"
	}
	return ""
}
