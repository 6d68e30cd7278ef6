package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// YAML returns the configuration as a file with all defaults written out. Secrets are stars.
func (c *Config) YAML() ([]byte, error) {
	whole, _ := printed(reflect.ValueOf(c).Elem())
	return yaml.MarshalWithOptions(whole, yaml.Indent(2), yaml.IndentSequence(true))
}

// printed returns what YAML says of a value; ok is false for what a file leaves out.
func printed(v reflect.Value) (out any, ok bool) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, false
		}
		out, _ := printed(v.Elem())
		return out, true // {} says that it is there
	}
	mode, _ := v.Interface().(Mode)
	switch {
	case mode.Word != "" && mode.Switch == "":
		return mode.Word, true
	case isScalar(v):
		return printedScalar(v)
	case v.Kind() == reflect.Struct:
		return printedFields(v)
	}
	list := []any{}
	for i := range v.Len() {
		if one, ok := printed(v.Index(i)); ok {
			list = append(list, one)
		}
	}
	return list, len(list) > 0
}

func printedFields(v reflect.Value) (out yaml.MapSlice, ok bool) {
	out = yaml.MapSlice{}
	for _, f := range fieldsOf(v.Type()) {
		value := v.Field(f.index)
		one, ok := printed(value)
		if !ok {
			continue
		}
		if f.tag.named {
			named := yaml.MapSlice{}
			for i := range value.Len() {
				fields, _ := printed(value.Index(i))
				named = append(named, yaml.MapItem{Key: value.Index(i).FieldByName("Name").String(), Value: fields})
			}
			one = named
		}
		switch holder := v.Interface().(type) {
		case Rule:
			if f.tag.name == "table" {
				one = escaped(holder.Schema + "." + holder.Table)
			}
		case Segment:
			if f.tag.name == "last" && holder.Last == 0 {
				continue // what the column holds
			}
		case Snowflake:
			if f.tag.name == "worker" && holder.Workers != "" || f.tag.name == "datacenter" && !strings.Contains(holder.Layout, "+") {
				continue // it has none
			}
			if f.tag.name == "pool" && holder.Pool == 0 {
				continue // serve makes none
			}
		}
		out = append(out, yaml.MapItem{Key: f.tag.name, Value: one})
	}
	return out, len(out) > 0
}

func printedScalar(v reflect.Value) (out any, ok bool) {
	switch value := v.Interface().(type) {
	case time.Time:
		return value.UTC().Format(time.RFC3339), !value.IsZero()
	case time.Duration:
		return value.String(), value != 0 // 0 is what is left out
	case fmt.Stringer: // secrets, sizes, addresses
		text := value.String()
		return escaped(text), text != ""
	case string:
		return escaped(value), value != ""
	case bool:
		return value, value
	default:
		return value, true
	}
}

// escaped writes a text so that no variable of the environment is read from it.
func escaped(s string) string { return strings.ReplaceAll(s, "$", "$$") }
