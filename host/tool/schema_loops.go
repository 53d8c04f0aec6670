package tool

import (
	"encoding/json"
	"fmt"
	"strings"
)

// loops refuses a schema with a $ref that comes back to itself without going
// down into the value: checking with it would never end.
func loops(source json.RawMessage) error {
	var root any
	if err := json.Unmarshal(source, &root); err != nil {
		return err
	}
	const onPath, done = 1, 2
	state := map[string]int{}
	var visit func(pointer string) error
	visit = func(pointer string) error {
		switch state[pointer] {
		case onPath:
			return fmt.Errorf("the $ref to #%s leads back to itself", pointer)
		case done:
			return nil
		}
		state[pointer] = onPath
		for _, next := range inPlace(lookup(root, pointer), pointer) {
			if err := visit(next); err != nil {
				return err
			}
		}
		state[pointer] = done
		return nil
	}
	for _, pointer := range pointers(root, "") {
		if err := visit(pointer); err != nil {
			return err
		}
	}
	return nil
}

// inPlace are the schemas that apply to the same value as the one at pointer.
func inPlace(node any, pointer string) []string {
	object, _ := node.(map[string]any)
	var next []string
	if ref, ok := object["$ref"].(string); ok && strings.HasPrefix(ref, "#") {
		next = append(next, strings.TrimSuffix(ref[1:], "/"))
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := object[key].([]any)
		for i := range list {
			next = append(next, fmt.Sprintf("%s/%s/%d", pointer, key, i))
		}
	}
	for _, key := range []string{"not", "if", "then", "else"} {
		if _, ok := object[key]; ok {
			next = append(next, pointer+"/"+key)
		}
	}
	return next
}

// pointers are the places of all objects below node.
func pointers(node any, at string) []string {
	found := []string{}
	switch node := node.(type) {
	case map[string]any:
		found = append(found, at)
		for key, child := range node {
			found = append(found, pointers(child, at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key))...)
		}
	case []any:
		for i, child := range node {
			found = append(found, pointers(child, fmt.Sprintf("%s/%d", at, i))...)
		}
	}
	return found
}

func lookup(node any, pointer string) any {
	for _, part := range strings.Split(pointer, "/")[1:] {
		switch n := node.(type) {
		case map[string]any:
			node = n[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		case []any:
			var i int
			if _, err := fmt.Sscanf(part, "%d", &i); err != nil || i < 0 || i >= len(n) {
				return nil
			}
			node = n[i]
		default:
			return nil
		}
	}
	return node
}
